import os

# Before `datasets` is imported: no test asks the network
os.environ["HF_HUB_OFFLINE"] = "1"

import pytest

from benchmarks.images import write_hub
from unshuffle.experiments.training import Run


@pytest.fixture(scope="session", autouse=True)
def _caches(tmp_path_factory):
    """Nothing is read from the user's caches, and nothing left there."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNSHUFFLE_CACHE", str(folder / "unshuffle"))
        patch.setenv("HF_DATASETS_CACHE", str(folder / "datasets"))
        patch.delenv("UNSHUFFLE_DATA", raising=False)
        yield


@pytest.fixture(scope="session")
def hub(tmp_path_factory):
    """A folder in the hub's layout with a small MNIST and a small CIFAR-10."""
    root = tmp_path_factory.mktemp("hub")
    write_hub(root, "mnist", 96, 24)
    write_hub(root, "cifar10", 40, 16)
    return root


@pytest.fixture(autouse=True)
def _fresh_accelerate():
    """`accelerate` keeps one state for a process; every test begins its own."""
    yield
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state(reset_partial_state=True)


class Killed(Exception):  # noqa: N818
    pass


@pytest.fixture
def kill_at(monkeypatch):
    """Call a function that trains, and stop it before a step, as a kill would; right after a checkpoint, or not."""

    def stopped(step, function, *, saving=False):
        make_step = Run.make_step

        def make_step_or_stop(self):
            if self.step == step:
                if saving:
                    self.save()
                raise Killed
            return make_step(self)

        with monkeypatch.context() as patch:
            patch.setattr(Run, "make_step", make_step_or_stop)
            with pytest.raises(Killed):
                function()

    return stopped
