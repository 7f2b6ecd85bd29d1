import os

# Before `datasets` is imported: no test asks the network
os.environ["HF_HUB_OFFLINE"] = "1"

import pytest

from benchmarks.images import write_hub
from unshuffle import cli


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


@pytest.fixture
def command(monkeypatch, capsys, tmp_path):
    """Run a command line in an empty folder: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")

    def call(line):
        monkeypatch.setattr("sys.argv", ["unshuffle", *line.split()])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        captured = capsys.readouterr()
        return stop.value.code, captured.out, captured.err

    return call
