"""A second, closer look at where pieces meet.

The network was trained on small pictures, and sees a piece of a photograph shrunk to a few pixels. At an edge much more
is to be seen. So each piece is also taken s times as large and cut into s × s tiles of the network's size; the ones
along one side of a piece go against those along the opposite side of another, pair by pair. The costs of neighbours
were learned as −log p up to a constant (`experiments.mosaic.beside`), so that those of several places along an edge,
and of several scales, add up:

    C_r[i, j] ← C_r[i, j] + Σ_s Σ_t f_r(last_t(i), first_t(j))        t = 1 … s along the edge between i and j

It is the same network throughout; nothing is trained for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from unshuffle import tiles
from unshuffle.descent import Descent
from unshuffle.structures import Neighbour

if TYPE_CHECKING:
    from jaxtyping import Float, UInt8

    from unshuffle.pretrained import Jigsaw

SCALES = (2, 4, 8)


def scales(height: int, width: int, tile: int) -> tuple[int, ...]:
    """Those at which a piece of that size is not magnified."""
    return tuple(scale for scale in SCALES if scale * tile <= min(height, width))


def closer(descent: Descent, model: Jigsaw, views: Iterable[UInt8[Tensor, "n c h w"]]) -> Descent:
    """The descent (1, R, N, N) of a model, with what the pieces' edges say at each of the larger views added."""
    relations = descent.structure.relations
    first = sum(not isinstance(relation, Neighbour) for relation in relations)
    costs = descent.centred[0].clone()
    for view in views:
        costs[first:] += along_edges(model, view.to(costs.device))
    centred = descent.structure.centre(costs.unsqueeze(0))
    return replace(descent, centred=centred)


def along_edges(model: Jigsaw, pieces: UInt8[Tensor, "n c h w"]) -> Float[Tensor, "axes n n"]:
    """Σ_t f_r(last_t(i), first_t(j)) for both axes, from pieces of a multiple of the network's tile in size."""
    count, scale = len(pieces), pieces.shape[-1] // model.tile
    parts = tiles.cut(pieces, scale, scale).unflatten(1, (scale, scale))  # (N, s, s, c, tile, tile)
    total = []
    for axis in range(2):
        last, first = parts.select(axis + 1, scale - 1), parts.select(axis + 1, 0)  # (N, s, c, tile, tile)
        meeting = torch.cat([last, first]).movedim(1, 0)  # (s, 2N, c, tile, tile)
        total.append(model.neighbour_costs(meeting)[:, axis, :count, count:].sum(0))
    return torch.stack(total)
