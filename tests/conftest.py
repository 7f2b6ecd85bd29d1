import pytest
import torch
from hypothesis import settings

# A loaded machine must not fail a test: no deadlines, and the same examples in every run
settings.register_profile("unshuffle", deadline=None, derandomize=True, max_examples=25)
settings.load_profile("unshuffle")


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


@pytest.fixture
def command(monkeypatch, capsys, tmp_path):
    """Run a command line in an empty folder: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")

    from unshuffle import cli

    def call(line):
        monkeypatch.setattr("sys.argv", ["unshuffle", *line.split()])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        captured = capsys.readouterr()
        return stop.value.code, captured.out, captured.err

    return call
