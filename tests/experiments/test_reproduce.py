import io

import pytest
from rich.console import Console

from unshuffle.experiments import records, training
from unshuffle.experiments.problem import Problem
from unshuffle.experiments.reproduce import reproduce
from unshuffle.experiments.sorting import settings
from unshuffle.experiments.training import Running


@pytest.fixture(autouse=True)
def _few_sizes(monkeypatch):
    monkeypatch.setattr("unshuffle.experiments.sorting.SIZES", (4, 6))


def run(tmp_path, **chosen):
    """Two cells; what was printed."""
    configs = [settings(**({"size": size, "limit": 64, "batch_size": 32} | chosen)) for size in (4, 6)]
    console = Console(file=io.StringIO(), width=200)
    running = Running(tmp_path / "runs", device="cpu")
    reproduce("sorting", configs, tmp_path / "results", running, None, console)
    return console.file.getvalue()


def test_runs_the_grid_and_then_skips_it(tmp_path, monkeypatch):
    assert "[1/2] sorting-4-po-u: 1 epoch" in run(tmp_path)
    found = records.read_all(tmp_path / "results", "sorting")
    assert [record.config["size"] for record in found] == [4, 6]
    monkeypatch.setattr(training, "train", lambda *_: pytest.fail("trained again"))
    again = run(tmp_path)
    assert again.count("recorded in") == 2
    assert "another choice" not in again
    assert "with another choice of epochs" in run(tmp_path, epochs=2)


def test_a_killed_grid_goes_on(tmp_path, monkeypatch):
    whole = tmp_path / "whole"
    run(whole)
    make_step, steps = training.Run.make_step, []

    def killed(self):
        steps.append(self.step)
        if len(steps) == 4:  # within the second cell
            raise KeyboardInterrupt
        return make_step(self)

    with monkeypatch.context() as patch:
        patch.setattr(training.Run, "make_step", killed)
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path)
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["sorting-4-po-u.json"]
    assert "[1/2] sorting-4-po-u: recorded" in run(tmp_path)
    metrics = [[r.metrics for r in records.read_all(folder / "results", "sorting")] for folder in (tmp_path, whole)]
    assert metrics[0] == metrics[1]


def test_a_run_with_other_settings_is_not_touched(tmp_path):
    run(tmp_path)
    for record in (tmp_path / "results").iterdir():
        record.unlink()
    before = (tmp_path / "runs" / "sorting-4-po-u" / "record.json").read_bytes()
    with pytest.raises(Problem, match=r"sorting-4-po-u belongs to another run, which differs in seed; choose another"):
        run(tmp_path, seed=1)
    assert (tmp_path / "runs" / "sorting-4-po-u" / "record.json").read_bytes() == before
