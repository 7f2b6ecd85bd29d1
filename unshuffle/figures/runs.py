"""A run as the figures see it: its settings at once, its history, its model and its test images when asked for."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from unshuffle import tiles
from unshuffle.assembler import Assembler
from unshuffle.experiments import evaluation, records
from unshuffle.experiments.files import read_json
from unshuffle.experiments.mosaic import shuffles, take
from unshuffle.experiments.problem import Problem
from unshuffle.experiments.seeds import generator
from unshuffle.experiments.tasks import EXPERIMENTS, config_from
from unshuffle.experiments.training import RunDir, Task

if TYPE_CHECKING:
    from jaxtyping import Float, Int

ASSEMBLING = ("mosaic", "classify")  # the experiments whose model has an Assembler


@dataclass(frozen=True)
class Shuffled:
    """Test images, cut and shuffled: element i of a set belongs at position `positions[i]`."""

    pixels: Float[Tensor, "batch n c h w"]  # from 0 to 1, to draw
    inputs: Float[Tensor, "batch n c h w"]  # the same as the model sees it
    positions: Int[Tensor, "batch n"]

    def true_order(self) -> Int[Tensor, "batch n"]:
        """Which element belongs at each position."""
        return self.positions.argsort(-1)


class RunView:
    """One run. Weights and data are read the first time that a figure needs them."""

    def __init__(self, path: Path, device: str | None = None, root: Path | None = None) -> None:
        self.files, self.device, self.root = RunDir(path), device, root
        description = read_json(self.files.config, "the config of a run")
        self.experiment, self.config = config_from(description, self.files.config)

    @property
    def label(self) -> str:
        return f"{self.config.cell}, seed {self.config.seed}"

    @property
    def caption(self) -> str:
        """Cell, seed, epochs and version: enough to find the run, or to make it again."""
        config, finished = self.config, self.files.record.exists()
        limit = f", {config.limit:,} examples of each split" if config.limit is not None else ""
        epochs = f"{config.epochs} epoch{'s' * (config.epochs > 1)}"
        version = f"unshuffle {records.read(self.files.record).version}" if finished else "not finished"
        return f"{self.label}, {epochs}{limit}, {version}"

    def history(self) -> list[dict[str, Any]]:
        """What the run wrote as it went, line by line."""
        path = self.files.metrics
        try:
            lines = path.read_text().splitlines()
            return [json.loads(line) for line in lines if line.endswith("}")]  # the last one may be half a line yet
        except (OSError, ValueError) as error:
            raise Problem(f"{path} is not the metrics of a run: {error}") from error

    def steps_per_epoch(self) -> float:
        """For a common axis of runs with different batches."""
        for entry in self.history():
            if "epoch" in entry:
                return float(entry["step"] / entry["epoch"])
        raise Problem(f"{self.files.path} has not come to the end of an epoch; there is no history to draw yet")

    def require(self, figure: str, experiments: tuple[str, ...]) -> None:
        """Say so if this figure cannot be of such a run."""
        if self.experiment not in experiments:
            known = " or ".join(name for name in experiments if name in EXPERIMENTS)
            raise Problem(f"{self.files.path} is a run of {self.experiment}; the figure {figure} takes one of {known}")

    @cached_property
    def trained(self) -> tuple[Task, nn.Module]:
        task, model = evaluation.load(self.files.path, self.device, self.root)
        return task, model.eval().requires_grad_(False)

    @cached_property
    def assembler(self) -> Assembler:
        """The part of the model that arranges tiles; the whole of it, in the mosaic task."""
        return next(module for module in self.trained[1].modules() if isinstance(module, Assembler))

    @property
    def comparing(self) -> Assembler:
        """The same, where its comparisons were trained."""
        if not self.assembler.arrange.steps:
            raise Problem(f"{self.config.cell} takes no steps, so that it never learned costs; take a run that does")
        return self.assembler

    def shuffled(self, first: int, count: int) -> Shuffled:
        """So many test images from `first` on, as far as there are; every image is always shuffled in the same way."""
        task: Any = self.trained[0]
        if not 0 <= first < len(task.test):
            raise Problem(f"there is no image {first}: the test images of this run are 0 to {len(task.test) - 1}")
        side, images = self.config.side, task.test[first : first + count]
        drawn = [shuffles(1, side**2, generator("figure", first + number)) for number in range(len(images))]
        positions = torch.cat(drawn).to(images.device)
        pixels = take(tiles.cut(images, side, side), positions).float() / 255
        return Shuffled(pixels, task.puzzles(images, positions).tiles, positions)
