"""What a model that sorts numbers learned to say of two of them (the paper's appendix C.1)."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor
from torch.nn.functional import linear

from unshuffle.costs import PairwiseCost, pairs
from unshuffle.figures.drawing import GREY, canvas, centred
from unshuffle.figures.runs import RunView
from unshuffle.layer import Arrange

if TYPE_CHECKING:
    from jaxtyping import Float

Interval = tuple[float, float]
INTERVALS: tuple[Interval, ...] = ((0, 1), (0, 1000))
RESOLUTION = 101


def before_antisymmetry(cost: PairwiseCost, x: Float[Tensor, "*batch n features"]) -> Float[Tensor, "*batch r n n"]:
    """f(x_i, x_j), of which an order cost is F(x_i, x_j) = f(x_i, x_j) − f(x_j, x_i)."""
    first, second = linear(x, cost.pair).chunk(2, -1)
    return pairs(first + cost.bias, second, [*cost.layers.parameters()], cost.out.weight)


def comparisons(
    cost: PairwiseCost, interval: Interval, resolution: int = RESOLUTION
) -> tuple[Float[Tensor, "n n"], Float[Tensor, "n n"]]:
    """F and f of all pairs of evenly spaced numbers, the first argument in the rows."""
    exact = copy.deepcopy(cost).double()
    numbers = torch.linspace(*interval, resolution, dtype=torch.float64, device=exact.pair.device).unsqueeze(-1)
    with torch.no_grad():
        return exact(numbers)[0].cpu(), before_antisymmetry(exact, numbers)[0].cpu()


def comparison(of_intervals: Mapping[Interval, tuple[Tensor, Tensor]], caption: str) -> Figure:
    """F above and f below, a column for each interval."""
    title = "What is said of a pair of numbers: blue, $a$ belongs first; red, $b$ does"
    figure = canvas(4.1 * len(of_intervals), 7.4, title, caption)
    axes = figure.subplots(2, len(of_intervals), squeeze=False)
    names = ("$F(a, b) = f(a, b) - f(b, a)$", "$f(a, b)$")
    for column, ((low, high), functions) in zip(axes.T, of_intervals.items(), strict=True):
        for axis, name, values in zip(column, names, functions, strict=True):
            image = axis.imshow(
                values.numpy(), extent=(low, high, high, low), interpolation="nearest", **centred(values)
            )
            numbers = np.linspace(low, high, len(values))
            axis.contour(numbers, numbers, values.numpy(), levels=8, colors=GREY, linewidths=0.6, linestyles="solid")
            axis.xaxis.set(ticks_position="top", label_position="top")
            axis.set(xlabel="$b$", ylabel="$a$")
            axis.set_title(f"{name} on [{low:g}, {high:g}]", fontsize="medium")
            figure.colorbar(image, ax=axis, shrink=0.8)
    return figure


def of_run(run: RunView) -> Figure:
    cost = cast(PairwiseCost, cast(Arrange, run.trained[1]).cost)
    return comparison({interval: comparisons(cost, interval) for interval in INTERVALS}, run.caption)
