"""A set of numbers coming into order, step by step."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import torch
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
    figure, axes = plt.subplots(
        2, steps, figsize=(1.75 * steps, 3.9), height_ratios=(1.35, 1), layout="constrained", squeeze=False
    )
    for step, soft in enumerate(iterates):
        image = axes[0, step].imshow(soft[ranks], cmap="viridis", vmin=0, vmax=1)
        axes[0, step].set(title="start" if step == 0 else f"step {step}", xticks=[], yticks=[])
        axes[1, step].bar(range(size), soft.mT @ numbers, color=plt.cm.viridis(0.35), width=0.8)
        axes[1, step].set(ylim=(0, float(numbers.max()) * 1.05), xticks=[], xlabel="position")
        axes[1, step].spines[["top", "right"]].set_visible(False)
        if step:
            axes[1, step].set_yticks([])
    axes[0, 0].set_ylabel("number,\nsmallest first")
    axes[1, 0].set_ylabel("number at\nthis position")
    figure.colorbar(image, ax=axes[0], label="P", shrink=0.9, pad=0.01)
    figure.suptitle(f"{size} numbers, sorted by comparing pairs")
    return figure


def save(figure: Figure, path: Path) -> None:
    """Write beside, then rename: no half a picture."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.part")
    figure.savefig(beside, format=path.suffix.removeprefix("."), dpi=150)
    beside.replace(path)
    plt.close(figure)


def example(size: int = 10, seed: int = 2) -> torch.Tensor:
    """One set to draw."""
    return torch.rand(size, 1, generator=torch.Generator().manual_seed(seed))
