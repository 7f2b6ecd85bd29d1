"""Pairs of tiles that belong together, and what each of their pixels says to F (the paper's appendix C.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from unshuffle.experiments.mosaic import take
from unshuffle.figures.drawing import bare, canvas, centred, draw_tile, fit, relation_name
from unshuffle.figures.pairs import pair_gradients
from unshuffle.figures.runs import RunView, Shuffled
from unshuffle.structures import Lattice, Order, Relation

if TYPE_CHECKING:
    from jaxtyping import Float

IMAGES = 12
ACROSS = 3  # pairs beside each other, for each axis
GAP = 0.06  # between a tile and its gradient, in tiles


@dataclass(frozen=True)
class Pairs:
    """Pairs of tiles, (count, 2, c, h, w), and of each tile the gradient, (count, 2, h, w), summed over its colours.

    The gradient of F(t₁, t₂) with respect to t₁, and of F(t₂, t₁) with respect to t₂: where it is below zero, a
    brighter pixel moves its own tile forward.
    """

    relation: Relation
    tiles: Tensor
    gradients: Tensor


def neighbours(
    structure: Lattice, relation: Relation, placed: Float[Tensor, "batch n c h w"]
) -> Float[Tensor, "batch pairs 2 c h w"]:
    """All pairs of tiles that stand next to each other along an axis, of images whose tiles are in place."""
    grid = torch.arange(placed.shape[1]).reshape(structure.shape)
    count = grid.shape[relation.axis]
    first, second = (grid.narrow(relation.axis, start, count - 1).flatten() for start in (0, 1))
    return torch.stack([placed[:, first], placed[:, second]], 2)


def with_most_to_see(pairs: Float[Tensor, "batch pairs 2 c h w"]) -> Tensor:
    """Of each image the pair whose plainer tile has the most contrast: tiles of one colour say nothing."""
    return pairs.flatten(3).std(-1).amin(-1).argmax(-1)


def order_pairs(run: RunView, shuffled: Shuffled) -> list[Pairs]:
    """One pair of each image for each order relation, with its gradients."""
    model, order = run.comparing, shuffled.true_order()
    structure, images = model.arrange.structure, torch.arange(len(order), device=order.device)
    found = []
    for number, relation in enumerate(structure.relations):
        if isinstance(relation, Order):
            inputs, pixels = (
                neighbours(structure, relation, take(tiles, order)) for tiles in (shuffled.inputs, shuffled.pixels)
            )
            chosen = with_most_to_see(pixels)
            of_first, of_second = pair_gradients(model, inputs[images, chosen])[number].sum(2).unbind(1)
            gradients = torch.stack([of_first, -of_second], 1)  # F(t₂, t₁) = −F(t₁, t₂)
            found.append(Pairs(relation, pixels[images, chosen].cpu(), gradients.cpu()))
    return found


def gradients(pairs: list[Pairs], caption: str) -> Figure:
    """Left, pairs that stand beside each other, their gradients below; right, above each other, gradients beside."""
    ordered = sorted(pairs, key=lambda of_axis: -of_axis.relation.axis)
    down = -(-len(ordered[0].tiles) // ACROSS)
    title = "Gradients of F: brightening a blue pixel moves its tile forward (to the left, up), a red one back"
    figure = canvas(10, 1.0 + 1.55 * down, title, caption)
    axes = figure.subplots(1, len(ordered), squeeze=False, gridspec_kw={"wspace": 0.08})[0]
    for axis, of_axis in zip(axes, ordered, strict=True):
        for number, (tiles, gradient) in enumerate(zip(of_axis.tiles, of_axis.gradients, strict=True)):
            left, top = (2.3 + GAP) * (number % ACROSS), (2.3 + GAP) * (number // ACROSS)
            _group(axis, of_axis.relation.axis, tiles, gradient, left, top)
        bare(axis)
        fit(axis, 0, (2.3 + GAP) * ACROSS - 0.3, (2.3 + GAP) * down - 0.3, 0)
        axis.set_title(relation_name(of_axis.relation), fontsize="medium")
    return figure


def _group(axis: Axes, along: int, tiles: Tensor, gradients: Tensor, left: float, top: float) -> None:
    """Two tiles as they meet, and their gradients on the far side of a gap, on one scale for both."""
    colours = centred(gradients)
    for number, (tile, gradient) in enumerate(zip(tiles, gradients, strict=True)):
        across, beyond = left + number * (along == 1), top + number * (along == 0)
        draw_tile(axis, tile, across, beyond)
        x, y = (across, beyond + 1 + GAP) if along == 1 else (across + 1 + GAP, beyond)
        axis.imshow(gradient.numpy(), extent=(x, x + 1, y + 1, y), interpolation="nearest", **colours)


def of_run(run: RunView, image: int) -> Figure:
    shuffled = run.shuffled(image, IMAGES)
    last = image + len(shuffled.positions) - 1
    return gradients(order_pairs(run, shuffled), f"test images {image} to {last}; {run.caption}")
