"""One loop for every task: devices, precision, checkpoints, progress and records.

A task says what its model, its batches, its loss and its metrics are. A batch is a function of the seed and the step,
so that a resumed run sees what an undisturbed one would have seen, and the processes of a distributed run each take
their share of the same batch.
"""

from __future__ import annotations

import importlib.util
import json
import math
import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch
from rich.console import Console
from safetensors.torch import save as to_bytes
from torch import Tensor, nn

from unshuffle.experiments import checkpoints, records
from unshuffle.experiments.files import read_json, write, write_json
from unshuffle.experiments.problem import Problem
from unshuffle.experiments.progress import Display, display
from unshuffle.experiments.seeds import number
from unshuffle.layer import Arrange

PRECISIONS = ("float32", "bf16")
LOG_EVERY = 50  # steps between lines of metrics.jsonl


class Task(Protocol):
    """What the loop asks of an experiment."""

    name: str
    device: torch.device
    config: Any  # a frozen dataclass with cell, model, seed, epochs, batch_size (of one process), lr and clip
    items: int  # images or sets that an epoch goes through

    def build(self) -> nn.Module: ...
    def batch(self, epoch: int, first: int, size: int, part: slice) -> Any: ...  # part of that epoch's items
    def loss(self, model: nn.Module, batch: Any) -> Tensor: ...
    def learning_rate(self, progress: float) -> float: ...  # of the share of all steps that is done
    def watch(self, model: Any) -> dict[str, Any]: ...  # quick metrics after an epoch, on unseen data
    def evaluate(self, model: Any) -> dict[str, Any]: ...  # the metrics of the record, on unseen data


@runtime_checkable
class ChoosesOptimiser(Protocol):
    """A task that is trained with something else than Adam. Its state must be tensors, for the checkpoints."""

    def optimiser(self, parameters: list[nn.Parameter]) -> torch.optim.Optimizer: ...


@dataclass(frozen=True)
class Running:
    """Where and how a run happens: nothing here changes what is learned, beyond rounding."""

    run_dir: Path
    device: str | None = None
    precision: str = "float32"
    compile: bool = False
    resume: bool = False
    tensorboard: bool = False
    checkpoint_seconds: float = 60.0

    def __post_init__(self) -> None:
        if self.precision not in PRECISIONS:
            raise Problem(f"unknown precision {self.precision!r}; there are {', '.join(PRECISIONS)}")


class RunDir:
    """The files of a run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config, self.record = path / "config.json", path / "record.json"
        self.model, self.checkpoint = path / "model.safetensors", path / "checkpoint.safetensors"
        self.metrics = path / "metrics.jsonl"

    def check(self, description: dict[str, Any], resume: bool) -> None:
        """Say so if the folder cannot be this run's."""
        if self.config.exists():
            found = read_json(self.config, "the config of a run")
            if found != description:
                raise Problem(
                    f"{self.path} belongs to another run, which differs in "
                    f"{', '.join(differing(found, description))}; choose another folder, or remove this one"
                )
            if not resume:
                raise Problem(f"{self.path} already holds this run; pass --resume to go on with it")
        elif self.path.exists() and not self.path.is_dir():
            raise Problem(f"{self.path} is a file; a run needs a folder")
        elif self.path.exists() and any(self.path.iterdir()):
            raise Problem(f"{self.path} is not empty and holds no run; choose another folder")

    def claim(self, description: dict[str, Any], resume: bool) -> None:
        """Make the folder this run's, and clear away what a kill left half-written."""
        self.check(description, resume)
        if not self.config.exists():
            write_json(self.config, description)
        for part in self.path.glob(".*.part"):
            part.unlink()

    def forget_after(self, step: int) -> None:
        """Drop the lines that a killed run wrote after its last checkpoint: the steps come again."""
        lines = self.metrics.read_text().splitlines(keepends=True) if self.metrics.exists() else []
        write(self.metrics, "".join(line for line in lines if _step_of(line) <= step))

    def log(self, entry: dict[str, Any]) -> None:
        try:
            with self.metrics.open("a") as file:
                file.write(json.dumps(entry) + "\n")
        except OSError as error:
            raise Problem(f"cannot write {self.metrics}: {error.strerror or error}") from error


def _step_of(line: str) -> float:
    try:
        return json.loads(line)["step"]
    except (ValueError, KeyError, TypeError):
        return math.inf  # half a line, from a kill


def describe(name: str, config: Any) -> dict[str, Any]:
    """What config.json says: enough to build the task again."""
    return {"experiment": name, **as_json(config)}


def as_json(config: Any) -> dict[str, Any]:
    """Settings as they come back from a file: tuples are lists there."""
    return json.loads(json.dumps(asdict(config)))


def differing(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """The settings in which two runs are not the same."""
    return sorted(key for key in one | other if one.get(key) != other.get(key))


def working_device(name: str | None) -> torch.device:
    """The device of that name, or the best there is; says so if it cannot be used."""
    if name is None:
        return torch.accelerator.current_accelerator() or torch.device("cpu")
    try:
        return torch.zeros(1, device=name).device
    except (RuntimeError, AssertionError) as error:
        raise Problem(f"device {name!r} cannot be used here: {str(error).splitlines()[0]}") from error


def accelerator_for(running: Running) -> Any:
    """`accelerate` chooses the device, the precision and the processes."""
    if running.device:
        os.environ["ACCELERATE_TORCH_DEVICE"] = str(working_device(running.device))
    from accelerate import Accelerator

    if running.tensorboard and importlib.util.find_spec("tensorboard") is None:
        raise Problem("--tensorboard needs the package tensorboard: pip install tensorboard")
    return Accelerator(
        cpu=running.device == "cpu",
        mixed_precision="bf16" if running.precision == "bf16" else "no",
        log_with="tensorboard" if running.tensorboard else None,
        project_dir=str(running.run_dir) if running.tensorboard else None,
    )


def train(task: Task, running: Running, accelerator: Any, console: Console) -> records.Record:
    """Train a task to its end, from its checkpoint if there is one, and write its record."""
    files = RunDir(running.run_dir)
    if accelerator.is_main_process:
        files.claim(describe(task.name, task.config), running.resume)
    accelerator.wait_for_everyone()
    if not files.record.exists():
        run = Run(task, running, accelerator, files)
        run.train(console)
        if accelerator.is_main_process:
            run.finish()
        accelerator.wait_for_everyone()
    return records.read(files.record)


class Trained(nn.Module):
    """A model as the loop calls it."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, *inputs: Any) -> Any:
        return self.model(*inputs)


class Run:
    """A model, its optimiser, and how far they have come."""

    def __init__(self, task: Task, running: Running, accelerator: Any, files: RunDir) -> None:
        self.task, self.running, self.accelerator, self.files = task, running, accelerator, files
        self.main: bool = accelerator.is_main_process
        self.size = min(task.config.batch_size * accelerator.num_processes, task.items)
        if self.size % accelerator.num_processes:
            raise Problem(
                f"a batch of {self.size} cannot be shared by {accelerator.num_processes} processes; "
                "choose a --batch-size that they divide"
            )
        self.per_epoch = task.items // self.size

        torch.manual_seed(task.config.seed)
        self.model = task.build().to(accelerator.device)
        trained = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        # A model without parameters is only evaluated
        self.total = self.per_epoch * task.config.epochs if trained else 0
        self.optimiser: torch.optim.Optimizer
        if isinstance(task, ChoosesOptimiser):
            self.optimiser = task.optimiser(trained)
        else:  # the fused form is one kernel instead of a dozen a parameter
            fused = accelerator.device.type in ("cpu", "cuda")
            self.optimiser = torch.optim.Adam([{"params": trained}], lr=task.config.lr, fused=fused)
        before = checkpoints.Progress()
        if files.checkpoint.exists():
            before = checkpoints.load(files.checkpoint, self.model, self.optimiser)
        self.step, self.seconds_before, self.began = before.step, before.seconds, time.monotonic()
        if self.main:
            files.forget_after(self.step)
        # `prepare` changes the forward of what it is given; the model itself stays as it is, for evaluation in float32
        whole = torch.compile(self.model, dynamic=False) if running.compile else self.model
        self.prepared = accelerator.prepare(Trained(whole))
        if running.tensorboard:
            accelerator.init_trackers("tensorboard")

    def train(self, console: Console) -> None:
        title, note, saved = self.task.config.cell, "", time.monotonic()
        shown: Display
        with display(console if self.main else Console(quiet=True), title, self.total, self.step) as shown:
            while self.step < self.total:
                loss = self.make_step()
                if self.step % LOG_EVERY == 0 or self.step == self.total:
                    note = self.log_loss(loss)
                ends_epoch = self.step % self.per_epoch == 0
                if ends_epoch and self.main:
                    shown.line(f"{title}, epoch {self.step // self.per_epoch}: {note}, {self.watch()}")
                due = time.monotonic() - saved > self.running.checkpoint_seconds
                if self.main and (due or ends_epoch):
                    self.save()
                    saved = time.monotonic()
                shown.advance(note)
        if self.running.tensorboard:
            self.accelerator.end_training()

    def make_step(self) -> Tensor:
        epoch, inside = divmod(self.step, self.per_epoch)
        share, rank = self.size // self.accelerator.num_processes, self.accelerator.process_index
        for group in self.optimiser.param_groups:
            group["lr"] = self.task.learning_rate(self.step / self.total)
        part = slice(rank * share, (rank + 1) * share)
        torch.manual_seed(number(self.task.config.seed, self.step, rank))  # of dropout, in a resumed run as well
        loss = self.task.loss(self.prepared, self.task.batch(epoch, inside * self.size, self.size, part))
        self.optimiser.zero_grad()
        self.accelerator.backward(loss)
        if self.task.config.clip:
            self.accelerator.clip_grad_norm_(self.model.parameters(), self.task.config.clip)
        self.optimiser.step()
        self.step += 1
        return loss.detach()

    def log_loss(self, loss: Tensor) -> str:
        value = self.accelerator.reduce(loss, reduction="mean").item()
        if not math.isfinite(value):
            raise Problem(f"the loss is {value} at step {self.step}; try a smaller --lr, or --clip 1")
        rate = self.optimiser.param_groups[0]["lr"]
        self.log({"loss": value, "lr": rate, "step_size": step_sizes(self.model), "seconds": round(self.seconds(), 2)})
        return f"loss {value:.4f}"

    def watch(self) -> str:
        with evaluating(self.model):
            seen = self.task.watch(self.model)
        self.log({"epoch": self.step // self.per_epoch, **seen})
        return ", ".join(f"{name} {value:.4g}" for name, value in seen.items())

    def log(self, entry: dict[str, Any]) -> None:
        if self.main:
            self.files.log({"step": self.step, **entry})
        if self.running.tensorboard:
            numbers = {name: value for name, value in entry.items() if isinstance(value, (int, float))}
            self.accelerator.log(numbers, step=self.step)

    def save(self) -> None:
        progress = checkpoints.Progress(self.step, self.seconds())
        checkpoints.save(self.files.checkpoint, self.model, self.optimiser, progress)

    def seconds(self) -> float:
        return self.seconds_before + time.monotonic() - self.began

    def finish(self) -> None:
        """The weights, the metrics and the record; only then is the checkpoint no longer needed."""
        seconds = self.seconds()
        write(self.files.model, to_bytes({k: v.cpu().contiguous() for k, v in self.model.state_dict().items()}))
        with evaluating(self.model):
            metrics = self.task.evaluate(self.model)
        records.Record(
            experiment=self.task.name,
            config=asdict(self.task.config),
            metrics=metrics,
            images_seen=self.total * self.size,
            seconds=round(seconds, 1),
            environment=environment(self.running, self.accelerator),
        ).write(self.files.record)
        self.files.checkpoint.unlink(missing_ok=True)


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    model.eval()
    with torch.no_grad():
        yield
    model.train()


def step_sizes(model: nn.Module) -> list[float]:
    """|η| of every layer of the model."""
    layers = [module for module in model.modules() if isinstance(module, Arrange)]
    return [round(size, 5) for layer in layers for size in layer.step_size.detach().abs().tolist()]


def environment(running: Running, accelerator: Any) -> dict[str, Any]:
    """What a figure may depend on besides the settings."""
    return {
        "torch": torch.__version__,
        "python": platform.python_version(),
        "device": accelerator.device.type,
        "processes": accelerator.num_processes,
        "threads": torch.get_num_threads(),
        "precision": running.precision,
        "compile": running.compile,
    }
