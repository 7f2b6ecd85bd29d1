"""A set of numbers coming into order, step by step."""

from __future__ import annotations

import torch
from matplotlib import colormaps
from matplotlib.figure import Figure

from unshuffle.assignment import Arrangement


def sorting_steps(arrangement: Arrangement) -> Figure:
    """The assignment P after every step of the descent, and below it the numbers as they are arranged by then.

    `arrangement` is of one set of numbers, (N, 1). The rows of each P are drawn in the order of their numbers, so that
    a sorted set is the diagonal; the layer itself never sees that order.
    """
    iterates = arrangement.trajectory.detach().cpu()
    numbers = arrangement.x.detach().cpu()[:, 0]
    ranks = numbers.argsort()
    steps, size = len(iterates), len(numbers)
    figure = Figure(figsize=(1.75 * steps, 3.9), layout="constrained")
    axes = figure.subplots(2, steps, height_ratios=(1.35, 1), squeeze=False)
    for step, soft in enumerate(iterates):
        image = axes[0, step].imshow(soft[ranks].numpy(), cmap="viridis", vmin=0, vmax=1)
        axes[0, step].set(title="start" if step == 0 else f"step {step}", xticks=[], yticks=[])
        axes[1, step].bar(range(size), (soft.mT @ numbers).numpy(), color=colormaps["viridis"](0.35), width=0.8)
        axes[1, step].set(ylim=(0, float(numbers.max()) * 1.05), xticks=[], xlabel="position")
        axes[1, step].spines[["top", "right"]].set_visible(False)
        if step:
            axes[1, step].set_yticks([])
    axes[0, 0].set_ylabel("number,\nsmallest first")
    axes[1, 0].set_ylabel("number at\nthis position")
    figure.colorbar(image, ax=axes[0], label="P", shrink=0.9, pad=0.01)
    figure.suptitle(f"{size} numbers, sorted by comparing pairs")
    return figure


def example(size: int = 10, seed: int = 2) -> torch.Tensor:
    """One set to draw."""
    return torch.rand(size, 1, generator=torch.Generator().manual_seed(seed))
