"""Images coming together as their permutation is optimised (the paper's appendix E)."""

from __future__ import annotations

from collections.abc import Mapping
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

IMAGES = 9
STEPS = 5  # at the most, that are drawn; evenly spread, the first and the last among them
GAP = 0.06  # between images, in images


def reconstructions(
    arrangement: Arrangement, tiles: Float[Tensor, "batch n c h w"]
) -> Float[Tensor, "steps+2 batch c height width"]:
    """The tiles as every iterate assigns them, and last in the exact order."""
    exact = permutation(arrangement.order, arrangement.soft.dtype)
    iterates = torch.cat([arrangement.trajectory, exact.unsqueeze(0)])  # (steps + 2, batch, n, n)
    flat = tiles.flatten(2)
    arranged = apply(iterates, flat.expand(len(iterates), *flat.shape))
    return join(arranged.unflatten(-1, tiles.shape[2:]), *arrangement.descent.structure.shape)


def spread(last: int, most: int = STEPS) -> list[int]:
    """The numbers from 0 to `last`, or as many of them."""
    return torch.linspace(0, last, min(last + 1, most)).round().int().tolist()


def steps(rows: Mapping[str, Float[Tensor, "batch c height width"]], caption: str) -> Figure:
    """A column for each image, and rows by name."""
    count = len(next(iter(rows.values())))
    wide, high = count * (1 + GAP) - GAP, len(rows) * (1 + GAP) - GAP
    figure = canvas(10, 0.75 + 8.85 * high / wide, "Images being put together, from top to bottom", caption)
    axis = figure.subplots()
    for down, row in enumerate(rows.values()):
        for across, image in enumerate(row):
            draw_tile(axis, image, across * (1 + GAP), down * (1 + GAP))
    bare(axis)
    fit(axis, 0, wide, high, 0)
    axis.set_yticks([0.5 + down * (1 + GAP) for down in range(len(rows))], list(rows))
    axis.tick_params(length=0)
    return figure


def of_run(run: RunView, image: int) -> Figure:
    shuffled = run.shuffled(image, IMAGES)
    with torch.no_grad():
        arrangement = run.assembler(shuffled.inputs)
    descent = arrangement.descent
    *iterates, exact = reconstructions(arrangement, shuffled.pixels).cpu()
    rows = {f"step {step}": iterates[step] for step in spread(len(iterates) - 1)}
    start = "uniform start" if descent.start is None else "linear start"
    originals = join(take(shuffled.pixels, shuffled.true_order()), *descent.structure.shape).cpu()
    named = {start: rows.pop("step 0"), **rows, "exact order": exact, "the image": originals}
    return steps(named, f"test images {image} to {image + len(originals) - 1}; {run.caption}")
