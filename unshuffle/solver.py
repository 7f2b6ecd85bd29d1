"""Put a picture's pieces back in order: descents from several starts, and a search, on what the network learned."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from unshuffle import checks, shipped
from unshuffle.assignment import assign
from unshuffle.closer import closer, scales
from unshuffle.descent import Descent
from unshuffle.pictures import as_picture, in_colour, rearranged, small_pieces, trimmed
from unshuffle.restarts import perturbed
from unshuffle.search import exchanges, line_moves, order_cost, search

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Float, Int, UInt8
    from PIL.Image import Image

    from unshuffle.pretrained import Jigsaw

STEPS = 32  # of each descent: more than in training, which finds cheaper orders
AT_ONCE = 16  # descents in a batch
SPREAD = 0.3  # cost by which an order is e times less likely; see `certainty`


@dataclass(frozen=True, eq=False)
class Solution:
    """A picture put in order, of K = rows · cols positions.

    Attributes:
        picture: in full resolution, in the mode of the given one.
        given: what it was made from: the picture as it came, without the margin that does not fill the grid.
        order: (K,), which piece of the given picture belongs at each position; pieces and positions row by row.
        certainty: (K,), from 0 to 1, that the piece at each position belongs there; see `certainty`.
        seconds: that it took, without loading the weights.
        trajectory: (steps + 1, N, K), the iterates of the first descent; N are the pieces of the given picture.
        costs: (R, N, N), that the descent lowers: of unit norm, each times its step size.
        rows, cols: of the grid.
    """

    picture: Image
    given: Image
    order: Int[Tensor, " k"]
    certainty: Float[Tensor, " k"]
    seconds: float
    trajectory: Float[Tensor, "steps+1 n k"]
    costs: Float[Tensor, "r n n"]
    rows: int
    cols: int


@torch.no_grad()
def solve(
    image: Image | str | os.PathLike[str] | Tensor | np.ndarray,
    rows: int = 3,
    cols: int = 3,
    *,
    model: Jigsaw | None = None,
    seconds: float = 5.0,
    starts: int = 33,
    seed: int = 0,
) -> Solution:
    """Cut a picture into a grid of pieces, and put them in the order that the network finds best.

    Args:
        image: a PIL image, the path of one, or uint8 (h, w, channels). Up to rows − 1 pixels at its bottom and
            cols − 1 at its right, which do not fill the grid, are left out.
        model: the shipped one of that grid by default.
        seconds: no new descents begin after that.
        starts: how many descents; the first is the layer's own, the others start elsewhere.
        seed: of the other starts. The same picture and seed give the same answer, unless time was short; and how the
            pieces lay when they came does not matter.

    >>> import torch, unshuffle as us
    >>> us.solve(torch.arange(48, dtype=torch.uint8).mul(5).reshape(4, 4, 3), 2, 2).picture.size
    (4, 4)
    """
    for name, value in (("rows", rows), ("cols", cols), ("starts", starts)):
        checks.integer(name, value, least=1)
    checks.positive("seconds", seconds)
    model = _shipped(rows, cols) if model is None else model
    if model.grid.shape != (rows, cols):
        raise ValueError(f"model arranges {model.grid!r}, not {rows} rows and {cols} columns")
    begin = time.perf_counter()
    given = trimmed(as_picture(image), rows, cols)
    colours = in_colour(given)
    pieces = small_pieces(colours, rows, cols, model.tile)
    lay = canonical(pieces)
    descent = model(pieces[lay].unsqueeze(0).to(model.mean.device)).descent
    places = descent.places()
    sizes = [scale * model.tile for scale in scales(given.height // rows, given.width // cols, model.tile)]
    descent = closer(descent, model, (small_pieces(colours, rows, cols, size)[lay] for size in sizes))
    descent = replace(descent, steps=STEPS)
    random = torch.Generator().manual_seed(seed)
    orders = explore(descent, places, starts, begin + seconds, random)
    order, certain = certainty(descent, places, orders)
    back = lay.argsort()  # from the pieces as they came to where they stand in `lay`
    order = lay[order.cpu()]
    return Solution(
        rearranged(given, order, rows, cols),
        given,
        order,
        certain.cpu(),
        time.perf_counter() - begin,
        descent.trajectory()[:, 0].cpu()[:, back],
        descent.weighted()[0].cpu()[:, back][:, :, back],
        rows,
        cols,
    )


def scramble(
    image: Image | str | os.PathLike[str] | Tensor | np.ndarray, rows: int = 3, cols: int = 3, seed: int = 0
) -> tuple[Image, Int[Tensor, " k"]]:
    """The picture with its pieces in disorder, and the order that puts them right: what `solve` should find."""
    picture = trimmed(as_picture(image), rows, cols)
    random, positions = torch.Generator().manual_seed(seed), torch.arange(rows * cols)
    shuffled = positions
    while torch.equal(shuffled, positions) and len(positions) > 1:
        shuffled = torch.randperm(len(positions), generator=random)
    return rearranged(picture, shuffled, rows, cols), shuffled.argsort()


def canonical(pieces: UInt8[Tensor, "k c h w"]) -> Int[Tensor, " k"]:
    """An order of the pieces that depends on what is in them alone, so that the answer depends on nothing else."""
    content = [bytes(piece.flatten().tolist()) for piece in pieces]
    return torch.tensor(sorted(range(len(content)), key=content.__getitem__))


def explore(
    descent: Descent, places: Tensor | None, starts: int, deadline: float, random: torch.Generator
) -> Int[Tensor, "starts n"]:
    """Where `starts` descents of one set of costs (1, R, N, N) and the search after each arrive, the layer's first."""
    costs, structure = descent.weighted(), descent.structure
    found = [search(costs, structure, assign(descent.soft()), places=places)]
    begun = 1
    while begun < starts and time.perf_counter() < deadline:
        count = min(AT_ONCE, starts - begun)
        batch = perturbed(replace(descent, centred=descent.centred.expand(count, -1, -1, -1)), random)
        orders = assign(batch.soft())
        found.append(search(costs, structure, orders[:, None], places=places)[:, 0])
        begun += count
    return torch.cat(found)


def certainty(
    descent: Descent, places: Tensor | None, orders: Int[Tensor, "starts n"]
) -> tuple[Int[Tensor, " n"], Float[Tensor, " n"]]:
    """The cheapest order, and for each position the probability that its element belongs there:

        Σ {p(ρ) : ρ[k] = π[k]},   p(ρ) ∝ exp(−c(ρ) / s)

    over the orders ρ that were looked at: where each start arrived, and all exchanges and moves of lines of the
    cheapest one, π. The costs are of unit norm, so that one s serves all pictures; it was chosen so that the
    certainties on average are the share of pieces in place, on pictures that the figures are not measured on.
    """
    costs, structure = descent.weighted(), descent.structure
    spent = order_cost(costs, structure, orders[:, None], places)[:, 0]
    best = orders[spent.argmin()]
    moves = torch.cat([exchanges(len(best)), line_moves(structure.shape)]).to(best.device)
    seen = torch.cat([orders, best[moves]]).unique(dim=0)
    spent = order_cost(costs, structure, seen[:, None], places)[:, 0]
    likely = (-(spent - spent.min()) / SPREAD).softmax(0)
    return best, likely @ (seen == best).to(likely.dtype)


@lru_cache
def _shipped(rows: int, cols: int) -> Jigsaw:
    name = f"natural-{rows}x{cols}"
    if name not in shipped.names():
        grids = ", ".join(name.removeprefix("natural-").replace("x", "×") for name in shipped.names())
        raise ValueError(f"there are no weights for a grid of {rows}×{cols}; there are some for {grids}")
    return shipped.load(name)
