"""Images coming together as their permutation is optimised (the paper's appendix E)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from matplotlib.figure import Figure
from torch import Tensor

from unshuffle.assignment import Arrangement, apply, permutation
from unshuffle.experiments.mosaic import take
from unshuffle.figures.drawing import bare, canvas, draw_tile, fit
from unshuffle.figures.runs import RunView
from unshuffle.tiles import join

if TYPE_CHECKING:
    from jaxtyping import Float

IMAGES = 10
GAP = 0.06  # between images, in images


def reconstructions(
    arrangement: Arrangement, tiles: Float[Tensor, "batch n c h w"]
) -> Float[Tensor, "steps+2 batch c height width"]:
    """The tiles as every iterate assigns them, and last in the exact order."""
    exact = permutation(arrangement.order, arrangement.soft.dtype)
    iterates = torch.cat([arrangement.trajectory, exact.unsqueeze(0)])  # (steps + 2, batch, n, n)
    arranged = apply(iterates, tiles.flatten(2).expand(len(iterates), *tiles.flatten(2).shape))
    return join(arranged.unflatten(-1, tiles.shape[2:]), *arrangement.descent.structure.shape)


def steps(
    images: Float[Tensor, "steps+2 batch c height width"],
    originals: Float[Tensor, "batch c height width"],
    start: str,
    caption: str,
) -> Figure:
    """A column for each image: the start, every step, the exact order, and below the image as it was."""
    rows = torch.cat([images, originals.unsqueeze(0)])
    names = [start, *(f"step {step}" for step in range(1, len(images) - 1)), "exact order", "the image"]
    wide, high = images.shape[1] * (1 + GAP) - GAP, len(rows) * (1 + GAP) - GAP
    figure = canvas(10, 1.0 + 8.9 * high / wide, "Images being put together, from top to bottom", caption)
    axis = figure.subplots()
    for down, row in enumerate(rows):
        for across, image in enumerate(row):
            draw_tile(axis, image, across * (1 + GAP), down * (1 + GAP))
    bare(axis)
    fit(axis, 0, wide, high, 0)
    axis.set_yticks([0.5 + down * (1 + GAP) for down in range(len(rows))], names)
    axis.tick_params(length=0)
    return figure


def of_run(run: RunView, image: int) -> Figure:
    shuffled = run.shuffled(image, IMAGES)
    with torch.no_grad():
        arrangement = run.assembler(shuffled.inputs)
    shape = arrangement.descent.structure.shape
    originals = join(take(shuffled.pixels, shuffled.true_order()), *shape)
    start = "uniform start" if arrangement.descent.start is None else "linear start"
    last = image + len(originals) - 1
    return steps(
        reconstructions(arrangement, shuffled.pixels).cpu(),
        originals.cpu(),
        start,
        f"test images {image} to {last}; {run.caption}",
    )
