"""Where within a tile the comparisons look (the paper's appendix C.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from matplotlib.figure import Figure
from torch import Tensor

from unshuffle.assembler import Assembler
from unshuffle.figures.drawing import bare, canvas, relation_name
from unshuffle.figures.pairs import pair_gradients
from unshuffle.figures.runs import RunView
from unshuffle.structures import Order, Relation

if TYPE_CHECKING:
    from jaxtyping import Float

IMAGES = 500


def sensitivities(model: Assembler, tiles: Float[Tensor, "batch n c h w"]) -> Float[Tensor, "r 2 h w"]:
    """Mean |∂C_r(t₁, t₂)/∂t₁| and |∂C_r(t₁, t₂)/∂t₂|, over each tile of shuffled images and another of its image."""
    pairs = torch.stack([tiles, tiles.roll(1, 1)], 2).flatten(0, 1)  # (batch · n, 2, c, h, w)
    return pair_gradients(model, pairs).abs().mean((1, 3)).cpu()


def panels(relations: tuple[Relation, ...], maps: Float[Tensor, "r 2 h w"]) -> dict[Relation, Tensor]:
    """What there is to draw: of F one tile, as both tiles mean the same to it; of neighbours two that meet."""
    drawn: dict[Relation, Tensor] = {}
    for relation, (first, second) in zip(relations, maps, strict=True):
        if isinstance(relation, Order):
            drawn[relation] = (first + second) / 2
        else:
            drawn[relation] = torch.cat([first, second], relation.axis)
    return drawn


def sensitivity(named: list[tuple[str, Mapping[Relation, Tensor]]], caption: str) -> Figure:
    """A row of maps for each run by its name, and a column for each relation. Each map has a scale of its own."""
    relations = sorted({relation for _, maps in named for relation in maps}, key=_column)
    figure = canvas(
        1.0 + 2.3 * len(relations),
        1.2 + 2.3 * len(named),
        "Where in a tile the comparison looks:\nmean gradient, from zero (black) to its largest (bright)",
        caption,
    )
    axes = figure.subplots(len(named), len(relations), squeeze=False)
    for row, (name, maps) in zip(axes, named, strict=True):
        row[0].set_ylabel(name, fontsize="small")
        for axis, relation in zip(row, relations, strict=True):
            bare(axis)
            if relation in maps:
                values = maps[relation]
                axis.imshow(values.numpy(), cmap="inferno", vmin=0, vmax=float(values.max()) or 1.0)
                if not isinstance(relation, Order):
                    middle = values.shape[relation.axis] / 2 - 0.5
                    line = axis.axvline if relation.axis == 1 else axis.axhline
                    line(middle, color="white", linewidth=1)
    for axis, relation in zip(axes[0], relations, strict=True):
        axis.set_title(relation_name(relation), fontsize="medium")
    return figure


def _column(relation: Relation) -> tuple[bool, int]:
    """Order before neighbours, and left to right before top to bottom, as the paper's F₁ and F₂."""
    return not isinstance(relation, Order), -relation.axis


def of_runs(runs: list[RunView]) -> Figure:
    named: list[tuple[str, Mapping[Relation, Tensor]]] = []
    for run in runs:
        model = run.comparing
        maps = sensitivities(model, run.shuffled(0, IMAGES).inputs)
        named.append((run.config.cell, panels(model.arrange.structure.relations, maps)))
    return sensitivity(named, "\n".join(run.caption for run in runs))
