"""What a model says of every pair of tiles of one image: its costs as matrices (the paper's appendix C.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from unshuffle.figures.drawing import bare, canvas, centred, draw_tile, fit, relation_name
from unshuffle.figures.runs import RunView
from unshuffle.search import search
from unshuffle.structures import Lattice, Neighbour, Order, Relation, Sequence
from unshuffle.tiles import join

if TYPE_CHECKING:
    from jaxtyping import Float, Int

GAP = 0.15  # between matrix and tiles, in tiles


def lined_up(cost: Float[Tensor, "n n"]) -> Int[Tensor, " n"]:
    """The order of the tiles if this order cost were all there is."""
    return search(cost[None], Sequence(), cost.sum(-1).argsort())


def lines(structure: Lattice, relation: Relation, true: Int[Tensor, " n"]) -> Int[Tensor, " n"]:
    """The true order, read line by line along the relation's axis."""
    return true.reshape(structure.shape).movedim(relation.axis, -1).flatten()


def costs(
    structure: Lattice,
    matrices: Float[Tensor, "r n n"],
    tiles: Float[Tensor, "n c h w"],
    true: Int[Tensor, " n"],
    caption: str,
) -> Figure:
    """A row of matrices for each kind of relation, along the rows of the image and down its columns; and the image.

    For the order costs the tiles stand as each alone would line them up, for the neighbour costs as they truly do,
    with a box around the pairs that are neighbours.
    """
    kinds = [kind for kind in (Order, Neighbour) if any(isinstance(r, kind) for r in structure.relations)]
    title = "Does the tile on the left belong left of, or above, the tile at the top? Blue: yes; red: no"
    figure = canvas(10.5, 0.6 + 4.2 * len(kinds), title, caption)
    axes = figure.subplots(len(kinds), 3, squeeze=False, width_ratios=(1, 1, 0.3))
    for kind, row in zip(kinds, axes, strict=True):
        of_kind = {r: c for r, c in zip(structure.relations, matrices, strict=True) if isinstance(r, kind)}
        colours = centred(*of_kind.values())
        for relation, matrix in of_kind.items():
            axis = row[1 - relation.axis]
            order = lined_up(matrix) if kind is Order else lines(structure, relation, true)
            with_tiles(axis, matrix[order][:, order], tiles[order], colours)
            if kind is Neighbour:
                box_neighbours(axis, len(order), structure.shape[relation.axis])
            boxed = " (in boxes: so in the image)" if kind is Neighbour else ""
            axis.set_title(relation_name(relation) + boxed, fontsize="medium")
        figure.colorbar(row[0].images[0], ax=row[:2], shrink=0.7, label="cost")
        bare(row[2])
    image = axes[0, 2]
    draw_tile(image, join(tiles[true], *structure.shape), 0, 0)
    fit(image, 0, 1, 1, 0)
    image.set_title("the image", fontsize="small")
    return figure


def with_tiles(
    axis: Axes, matrix: Float[Tensor, "n n"], tiles: Float[Tensor, "n c h w"], colours: dict[str, Any]
) -> None:
    """A matrix with the tiles of its rows on the left and those of its columns at the top."""
    size = len(matrix)
    axis.imshow(matrix.numpy(), extent=(0, size, size, 0), **colours)
    for number, tile in enumerate(tiles):
        draw_tile(axis, tile, -1 - GAP, number + 0.04, 0.92)
        draw_tile(axis, tile, number + 0.04, -1 - GAP, 0.92)
    axis.add_patch(Rectangle((0, 0), size, size, fill=False, linewidth=0.6))
    bare(axis)
    fit(axis, -1 - GAP, size + 0.05, size + 0.05, -1 - GAP)


def box_neighbours(axis: Axes, size: int, line: int) -> None:
    """A box around each entry that is a pair of true neighbours, when the tiles stand line by line."""
    for number in range(size - 1):
        if (number + 1) % line:
            axis.add_patch(Rectangle((number + 1, number), 1, 1, fill=False, linewidth=1.2))


def of_run(run: RunView, image: int) -> Figure:
    model, shuffled = run.comparing, run.shuffled(image, 1)
    with torch.no_grad():
        matrices = model(shuffled.inputs).costs[0].cpu()
    caption = f"test image {image}; {run.caption}"
    return costs(model.arrange.structure, matrices, shuffled.pixels[0].cpu(), shuffled.true_order()[0].cpu(), caption)
