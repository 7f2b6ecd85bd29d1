"""The step sizes η through training: how far the descent learned to go at each step."""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib import colormaps
from matplotlib.figure import Figure

from unshuffle.experiments.problem import Problem
from unshuffle.figures.drawing import canvas, legend
from unshuffle.figures.runs import RunView

STYLES = ("solid", "dashed", "dotted", "dashdot")  # of order, then of neighbours, as `Arrange.step_size` holds them


@dataclass(frozen=True)
class StepSizes:
    """|η| of each kind of relation, at so many epochs."""

    name: str
    epochs: list[float]
    sizes: list[list[float]]


def read(run: RunView) -> StepSizes:
    entries = [entry for entry in run.history() if entry.get("step_size")]
    if all(size == 1 for entry in entries for size in entry["step_size"]):
        raise Problem(f"{run.config.cell} never moved its step size from 1: there is nothing to draw")
    per_epoch = run.steps_per_epoch()
    epochs = [0.0, *(entry["step"] / per_epoch for entry in entries)]
    return StepSizes(run.caption, epochs, [[1.0] * len(entries[0]["step_size"]), *(e["step_size"] for e in entries)])


def step_size(runs: list[StepSizes]) -> Figure:
    """A colour for each run, a kind of line for each kind of relation. Every η starts at 1."""
    figure = canvas(8.5, 4.2 + 0.25 * len(runs), "Step size of the inner descent, through training")
    axis = figure.subplots()
    for number, run in enumerate(runs):
        color = colormaps["tab10"](number % 10)
        for kind, sizes in enumerate(zip(*run.sizes, strict=True)):
            label = run.name if kind == 0 else "_"
            axis.plot(run.epochs, sizes, label=label, color=color, linestyle=STYLES[kind % len(STYLES)])
    axis.axhline(1, color="0.8", linewidth=0.8, zorder=0)
    axis.set(xlabel="epoch", ylabel="$|\\eta|$ (of order; dashed: of neighbours)")
    axis.spines[["top", "right"]].set_visible(False)
    legend(figure, columns=1)
    return figure


def of_runs(runs: list[RunView]) -> Figure:
    return step_size([read(run) for run in runs])
