"""Loss and metrics of several runs together, through training."""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib import colormaps
from matplotlib.figure import Figure

from unshuffle.figures.drawing import canvas, legend
from unshuffle.figures.runs import RunView

ACROSS = 3
SMOOTH = 9  # losses that a drawn one is the mean of, about 450 steps
NO_METRIC = {"step", "epoch", "images", "seconds"}
LOSS = "training loss"

Curve = list[tuple[float, float]]  # (epoch, value)


@dataclass(frozen=True)
class Curves:
    """What a run measured, by name: the loss of some steps, and the metrics after each epoch."""

    name: str
    of: dict[str, Curve]


def read(run: RunView) -> Curves:
    curves: dict[str, Curve] = {}
    per_epoch = run.steps_per_epoch()
    for entry in run.history():
        values = {LOSS: entry["loss"]} if "loss" in entry else {}
        if "epoch" in entry:
            values = {name: value for name, value in entry.items() if name not in NO_METRIC}
        for name, value in values.items():
            if isinstance(value, (int, float)):
                curves.setdefault(name, []).append((entry["step"] / per_epoch, value))
    return Curves(run.caption, curves)


def smoothed(curve: Curve, width: int = SMOOTH) -> Curve:
    """The mean of `width` values around each, fewer at the ends."""
    result = []
    for number, (epoch, _) in enumerate(curve):
        near = [value for _, value in curve[max(0, number - width // 2) : number + width // 2 + 1]]
        result.append((epoch, sum(near) / len(near)))
    return result


def curves(runs: list[Curves]) -> Figure:
    """A panel for the loss and for each metric, a colour for each run."""
    names = list(dict.fromkeys(name for run in runs for name in run.of))
    across = min(ACROSS, len(names))
    down = -(-len(names) // across)
    figure = canvas(3.4 * across, 0.9 + 2.6 * down + 0.1 * len(runs), "Loss and metrics, through training")
    axes = figure.subplots(down, across, squeeze=False).flatten()
    for axis, name in zip(axes, names, strict=False):
        for number, run in enumerate(runs):
            if name in run.of:
                curve = run.of[name]
                color = colormaps["tab10"](number % 10)
                if name == LOSS:
                    axis.plot(*zip(*curve, strict=True), color=color, alpha=0.25, linewidth=0.8)
                    curve = smoothed(curve)
                marker = "" if name == LOSS else "."
                axis.plot(*zip(*curve, strict=True), color=color, marker=marker, label=run.name)
        axis.set(title=name.replace("_", " "), xlabel="epoch")
        axis.title.set_fontsize("medium")
        positive = all(value > 0 for run in runs for _, value in run.of.get(name, []))
        if positive and (name == LOSS or name.endswith("mse")):
            axis.set_yscale("log")
        axis.spines[["top", "right"]].set_visible(False)
    for axis in axes[len(names) :]:
        axis.remove()
    legend(figure)
    return figure


def of_runs(runs: list[RunView]) -> Figure:
    return curves([read(run) for run in runs])
