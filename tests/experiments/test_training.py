import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from rich.console import Console
from safetensors.torch import load_file

from unshuffle.experiments import checkpoints, records, training
from unshuffle.experiments.evaluation import evaluate
from unshuffle.experiments.files import write
from unshuffle.experiments.mosaic import MosaicTask, settings
from unshuffle.experiments.problem import Problem
from unshuffle.experiments.processes import number_in
from unshuffle.experiments.training import Run, RunDir, Running, accelerator_for

QUIET = Console(quiet=True)
SMALL = {"side": 2, "model": "neighbours", "channels": 2, "hidden": 4, "pair_hidden": (4, 3), "batch_size": 16}


def train(hub, run_dir, *, resume=False, **chosen):
    running = Running(run_dir, device="cpu", resume=resume)
    accelerator = accelerator_for(running)
    task = MosaicTask(
        settings(**({"test_steps": 3, "starts": 2, "epochs": 3} | SMALL | chosen)), torch.device("cpu"), hub
    )
    return training.train(task, running, accelerator, QUIET)


def outcome(run_dir):
    """What a run came to, without the seconds that it took."""
    files = RunDir(run_dir)
    lines = [json.loads(line) for line in files.metrics.read_text().splitlines()]
    for line in lines:
        line.pop("seconds", None)
    record = records.read(files.record)
    return files.model.read_bytes(), lines, record.metrics, record.images_seen


def test_a_run_leaves_its_four_files(hub, tmp_path):
    record = train(hub, tmp_path / "run")
    assert {path.name for path in (tmp_path / "run").iterdir()} == {
        "config.json", "model.safetensors", "metrics.jsonl", "record.json",
    }  # fmt: skip
    assert record.images_seen == 3 * 96
    assert record.experiment == "mosaic"
    assert record.config["model"] == "neighbours"
    assert record.environment["threads"] == torch.get_num_threads()
    assert record == records.read(tmp_path / "run" / "record.json")
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines if "epoch" in line] == [1, 2, 3]
    assert len(next(line for line in lines if "loss" in line)["step_size"]) == 2
    assert evaluate(tmp_path / "run", "cpu", hub) == record.metrics


def test_training_learns(hub, tmp_path):
    record = train(hub, tmp_path / "run", model="po-u", channels=8, hidden=16, epochs=30, lr=5e-3)
    assert record.metrics["tiles"] > 0.8  # by chance 0.25


class Killed(Exception):  # noqa: N818
    pass


@pytest.mark.parametrize("at", [3, 6, 17])  # within an epoch, at the end of one, just before the last step
def test_resumed_equals_undisturbed(hub, tmp_path, monkeypatch, at):
    train(hub, tmp_path / "whole")
    make_step = Run.make_step

    def killed(self):
        if self.step == at:
            raise Killed
        return make_step(self)

    with monkeypatch.context() as patch:
        patch.setattr(Run, "make_step", killed)
        with pytest.raises(Killed):
            train(hub, tmp_path / "killed")
    with (tmp_path / "killed" / "metrics.jsonl").open("a") as file:
        file.write('{"step": 999, "loss": 1.0}\n{"step": 2, "lo')  # what a kill may leave behind
    train(hub, tmp_path / "killed", resume=True)
    assert outcome(tmp_path / "killed") == outcome(tmp_path / "whole")


COMMAND = [sys.executable, "-m", "unshuffle", "train", "mosaic", "--side", "2", "--model", "po-u", "--device", "cpu"]
COMMAND += ["--epochs", "80", "--batch-size", "16"]


def launch(command, hub, run_dir, *more):
    environment = os.environ | {"OMP_NUM_THREADS": "1", "UNSHUFFLE_DATA": str(hub)}
    return subprocess.Popen([*command, "--run-dir", str(run_dir), *more], env=environment, stdout=subprocess.DEVNULL)


def test_kill_9_and_resume(hub, tmp_path):
    """Killed twice for real, once while a checkpoint is being written if it can be caught, then left alone."""
    undisturbed = launch(COMMAND, hub, tmp_path / "whole")
    folder, more = tmp_path / "killed", ()
    for kill in range(2):
        process = launch(COMMAND, hub, folder, *more)
        deadline = time.monotonic() + 120
        seen = 0
        while process.poll() is None and time.monotonic() < deadline:
            writing = list(folder.glob(".checkpoint.safetensors.*.part"))
            seen += bool(writing)
            if seen > 3 or (seen and kill):
                break
            time.sleep(0.0005)
        assert process.poll() is None, "it ended before it could be killed"
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not (folder / "record.json").exists()
        more = ("--resume",)
    assert launch(COMMAND, hub, folder, *more).wait() == 0
    assert undisturbed.wait() == 0
    assert outcome(folder) == outcome(tmp_path / "whole")
    assert not list(folder.glob("*checkpoint*"))


def test_two_processes_take_the_steps_of_one(hub, tmp_path):
    """Half the batch each, in the same steps, by the command of the README."""
    options = [
        "-m",
        *["unshuffle", "train", "mosaic", "--side", "2", "--model", "po-u", "--epochs", "2", "--lr", "0.01"],
    ]
    one = [sys.executable, *options, "--device", "cpu", "--batch-size", "32", "--run-dir", str(tmp_path / "one")]
    launcher = [str(Path(sys.executable).parent / "accelerate"), "launch", "--num_processes", "2", "--cpu"]
    two = [*launcher, *options, "--batch-size", "16", "--run-dir", str(tmp_path / "two")]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "UNSHUFFLE_DATA": str(hub)}
    for command in (one, two):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr[-2000:]
    found = records.read(tmp_path / "two" / "record.json")
    assert found.environment["processes"] == 2
    assert found.images_seen == records.read(tmp_path / "one" / "record.json").images_seen == 2 * 96
    task = MosaicTask(settings(side=2, model="po-u"), torch.device("cpu"), hub)
    tiles = task.batch(0, 0, 16, slice(None)).tiles
    soft = []
    for weights in ({}, *(load_file(tmp_path / name / "model.safetensors") for name in ("one", "two"))):
        torch.manual_seed(0)
        model = task.build()
        model.load_state_dict(weights, strict=bool(weights))
        soft.append(model(tiles).soft)
    # Not the weights themselves: Adam makes whole steps of the rounding errors in the bias of an always active unit
    torch.testing.assert_close(soft[2], soft[1], atol=1e-4, rtol=0)
    assert (soft[1] - soft[0]).abs().max() > 0.01


@pytest.mark.parametrize(
    ("command", "number"),
    [
        (["accelerate", "launch", "--num_processes", "2", "--cpu", "-m", "unshuffle"], 2),
        (["accelerate", "launch", "--num-processes=4", "--cpu"], 4),
        (["accelerate", "launch", "--cpu"], 1),
        (["python", "--num_processes"], 1),
        ([], 1),
    ],
)
def test_how_many_processes_were_asked_for(command, number):
    assert number_in(command) == number


def interrupted(hub, run_dir, monkeypatch):
    """A run that was stopped after its first epoch."""
    make_step = Run.make_step

    def stop(self):
        if self.step == 7:
            raise Killed
        return make_step(self)

    with monkeypatch.context() as patch:
        patch.setattr(Run, "make_step", stop)
        with pytest.raises(Killed):
            train(hub, run_dir)
    return RunDir(run_dir)


def test_truncated_and_foreign_checkpoints(hub, tmp_path, monkeypatch):
    files = interrupted(hub, tmp_path / "run", monkeypatch)
    good = files.checkpoint.read_bytes()
    for content, message in [
        (good[: len(good) // 2], "cannot be read as safetensors"),
        (b"\x80\x04K\x01.", "cannot be read as safetensors"),  # a pickle
        (b"", "cannot be read as safetensors"),
    ]:
        files.checkpoint.write_bytes(content)
        with pytest.raises(Problem, match=message):
            train(hub, tmp_path / "run", resume=True)
        assert files.checkpoint.read_bytes() == content  # nothing overwritten
    other = MosaicTask(settings(**(SMALL | {"hidden": 7})), torch.device("cpu"), hub).build()
    checkpoints.save(files.checkpoint, other, torch.optim.Adam(other.parameters()), checkpoints.Progress())
    with pytest.raises(Problem, match="holds the weights of another model"):
        train(hub, tmp_path / "run", resume=True)
    write(files.checkpoint, checkpoints.to_bytes({"x": torch.zeros(1)}))
    with pytest.raises(Problem, match="is not a checkpoint of this version"):
        train(hub, tmp_path / "run", resume=True)


def test_a_full_disk_keeps_the_last_checkpoint(hub, tmp_path, monkeypatch):
    files = interrupted(hub, tmp_path / "run", monkeypatch)
    good = files.checkpoint.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(good) // 2, limits[1]))
    try:
        with pytest.raises(Problem, match=r"cannot write .*checkpoint.*; what stood there before is untouched"):
            train(hub, tmp_path / "run", resume=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert files.checkpoint.read_bytes() == good
    assert not list(tmp_path.rglob("*.part"))
    train(hub, tmp_path / "run", resume=True)
    train(hub, tmp_path / "whole")
    assert outcome(tmp_path / "run") == outcome(tmp_path / "whole")


def test_a_run_directory_belongs_to_one_run(hub, tmp_path):
    train(hub, tmp_path / "run")
    before = outcome(tmp_path / "run")
    with pytest.raises(Problem, match="already holds this run; pass --resume"):
        train(hub, tmp_path / "run")
    with pytest.raises(Problem, match="belongs to another run, which differs in lr, seed"):
        train(hub, tmp_path / "run", resume=True, lr=1.0, seed=3)
    assert train(hub, tmp_path / "run", resume=True) == records.read(tmp_path / "run" / "record.json")
    assert outcome(tmp_path / "run") == before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    with pytest.raises(Problem, match="is not empty and holds no run"):
        train(hub, tmp_path / "mine")
    (tmp_path / "file").touch()
    with pytest.raises(Problem, match="is a file"):
        train(hub, tmp_path / "file")


def test_evaluating_an_unfinished_run(hub, tmp_path, monkeypatch):
    interrupted(hub, tmp_path / "run", monkeypatch)
    with pytest.raises(Problem, match="holds no finished run"):
        evaluate(tmp_path / "run", "cpu", hub)
    with pytest.raises(Problem, match="is not the config of a run"):
        evaluate(tmp_path / "nowhere", "cpu", hub)


def test_a_loss_that_is_no_number_stops_the_run(hub, tmp_path, monkeypatch):
    monkeypatch.setattr(MosaicTask, "loss", lambda self, model, batch: 0 / model(batch.tiles).soft.sum() / 0.0)
    monkeypatch.setattr(training, "LOG_EVERY", 1)
    with pytest.raises(Problem, match=r"the loss is .* at step 1; try a smaller --lr"):
        train(hub, tmp_path / "run")


def test_bf16_trains_and_is_evaluated_in_float32(hub, tmp_path):
    running = Running(tmp_path / "run", device="cpu", precision="bf16")
    accelerator = accelerator_for(running)
    task = MosaicTask(settings(**SMALL, epochs=1, test_steps=2, starts=1), torch.device("cpu"), hub)
    run = Run(task, running, accelerator, RunDir(running.run_dir))
    seen = {}
    run.model.encoder.register_forward_hook(lambda module, inputs, output: seen.update(dtype=output.dtype))
    run.make_step()
    assert seen["dtype"] == torch.bfloat16
    run.watch()
    assert seen["dtype"] == torch.float32


def test_files_are_whole_or_not_there(tmp_path, monkeypatch):
    path = tmp_path / "deep" / "file.json"
    write(path, "one")
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(Problem, match="No space left on device; what stood there before is untouched"):
        write(path, "two")
    assert path.read_text() == "one"
    assert [p.name for p in path.parent.iterdir()] == ["file.json"]
