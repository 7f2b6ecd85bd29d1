"""The step sizes η through training: how far the descent learned to go at each step."""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib import colormaps
from matplotlib.figure import Figure

from unshuffle.experiments.problem import Problem
from unshuffle.figures.drawing import canvas
from unshuffle.figures.runs import RunView

KINDS = (("order", "solid"), ("neighbours", "dashed"))  # as `Arrange.step_size` holds them


@dataclass(frozen=True)
class StepSizes:
    """|η| of each kind of relation, at so many epochs."""

    name: str
    epochs: list[float]
    sizes: list[list[float]]


def read(run: RunView) -> StepSizes:
    entries = [entry for entry in run.history() if entry.get("step_size")]
    if not entries:
        raise Problem(f"{run.files.metrics} holds no step sizes")
    per_epoch = run.steps_per_epoch()
    epochs = [0.0, *(entry["step"] / per_epoch for entry in entries)]
    return StepSizes(run.label, epochs, [[1.0] * len(entries[0]["step_size"]), *(e["step_size"] for e in entries)])


def step_size(runs: list[StepSizes], caption: str) -> Figure:
    """A colour for each run, a kind of line for each kind of relation. Every η starts at 1."""
    figure = canvas(8, 4.6, "Step size of the inner descent, through training", caption)
    axis = figure.subplots()
    for number, run in enumerate(runs):
        kinds = list(zip(*run.sizes, strict=True))
        for (kind, style), sizes in zip(KINDS, kinds, strict=False):
            label = f"{run.name}: {kind}" if len(kinds) > 1 else run.name
            axis.plot(run.epochs, sizes, label=label, color=colormaps["tab10"](number % 10), linestyle=style)
    axis.axhline(1, color="0.8", linewidth=0.8, zorder=0)
    axis.set(xlabel="epoch", ylabel="$|\\eta|$")
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(fontsize="small", frameon=False)
    return figure


def of_runs(runs: list[RunView]) -> Figure:
    return step_size([read(run) for run in runs], "\n".join(run.caption for run in runs))
