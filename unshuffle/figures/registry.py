"""The figures by name: which runs each is of, and how it is drawn from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from matplotlib.figure import Figure

from unshuffle.experiments.problem import Problem
from unshuffle.experiments.tasks import EXPERIMENTS
from unshuffle.figures import comparison, costs, curves, gradients, sensitivity, step_size, steps
from unshuffle.figures.runs import ASSEMBLING, RunView


@dataclass(frozen=True)
class OfRuns:
    """Several runs in one figure."""

    draw: Callable[[list[RunView]], Figure]
    experiments: tuple[str, ...] = tuple(EXPERIMENTS)

    def of(self, name: str, runs: list[RunView], image: int | None) -> Figure:
        if image is not None:
            raise Problem(f"the figure {name} is not of one image; leave --image out")
        return self.draw(runs)


@dataclass(frozen=True)
class OfRun:
    """One run."""

    draw: Callable[[RunView], Figure]
    experiments: tuple[str, ...]

    def of(self, name: str, runs: list[RunView], image: int | None) -> Figure:
        return OfRuns(lambda runs: self.draw(_only(name, runs)), self.experiments).of(name, runs, image)


@dataclass(frozen=True)
class OfImages:
    """Test images of one run, from a chosen one on."""

    draw: Callable[[RunView, int], Figure]
    experiments: tuple[str, ...] = ASSEMBLING

    def of(self, name: str, runs: list[RunView], image: int | None) -> Figure:
        return self.draw(_only(name, runs), image or 0)


FIGURES: dict[str, OfRuns | OfRun | OfImages] = {
    "comparison": OfRun(comparison.of_run, ("sorting",)),
    "costs": OfImages(costs.of_run),
    "sensitivity": OfRuns(sensitivity.of_runs, ASSEMBLING),
    "gradients": OfImages(gradients.of_run),
    "steps": OfImages(steps.of_run),
    "step-size": OfRuns(step_size.of_runs),
    "curves": OfRuns(curves.of_runs),
}


def figure(name: str, runs: list[RunView], image: int | None = None) -> Figure:
    """The figure of that name, of these runs. `image` is the first test image, where there are images in it."""
    if name not in FIGURES:
        raise Problem(f"unknown figure {name!r}; there are {', '.join(FIGURES)}")
    kind = FIGURES[name]
    for run in runs:
        run.require(name, kind.experiments)
    return kind.of(name, runs, image)


def _only(name: str, runs: list[RunView]) -> RunView:
    if len(runs) != 1:
        raise Problem(f"the figure {name} is of one run, got {len(runs)}")
    return runs[0]
