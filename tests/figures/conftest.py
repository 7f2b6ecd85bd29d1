import pytest
from rich.console import Console

from tests.experiments.conftest import _caches, _fresh_accelerate, hub  # noqa: F401, the same small datasets
from unshuffle.experiments import training
from unshuffle.experiments.tasks import experiment
from unshuffle.figures.runs import RunView

SMALL = {"limit": 32, "batch_size": 16, "epochs": 2, "hidden": 8}
RUNS = {
    "sorting": ("sorting", {"size": 4, **SMALL}),
    "po-u": ("mosaic", {"model": "po-u", "side": 2, "channels": 4, **SMALL}),
    "po-la": ("mosaic", {"model": "po-la", "side": 3, "channels": 4, **SMALL}),
    "neighbours": ("mosaic", {"dataset": "cifar10", "side": 3, "model": "neighbours", "channels": 4, **SMALL}),
    "lin-assign": ("mosaic", {"model": "lin-assign", "side": 2, "channels": 4, **SMALL}),
}


@pytest.fixture(scope="session")
def runs(hub, tmp_path_factory):  # noqa: F811
    """The folder of a small finished run of each kind of model."""
    from accelerate.state import AcceleratorState

    root = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("unshuffle.experiments.sorting.SIZES", (4,))
        patch.setattr(training, "LOG_EVERY", 1)
        for name, (task, chosen) in RUNS.items():
            how = training.Running(root / name, device="cpu")
            accelerator = training.accelerator_for(how)
            config = experiment(task).settings(**chosen)
            training.train(
                experiment(task).task(config, accelerator.device, hub), how, accelerator, Console(quiet=True)
            )
            AcceleratorState._reset_state(reset_partial_state=True)
    return root


@pytest.fixture
def view(runs, hub):  # noqa: F811
    return lambda name: RunView(runs / name, "cpu", hub)
