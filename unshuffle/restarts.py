"""Several descents of the same costs, each followed by a local search: the best of them is rarely beaten."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from unshuffle import checks
from unshuffle.assignment import assign
from unshuffle.descent import Descent
from unshuffle.search import best_of, search

if TYPE_CHECKING:
    from jaxtyping import Float, Int

NOISE = 1.0  # standard deviation of what is added to the start's scores
SPREAD = (0.5, 1.5)  # range of the factors on the step sizes


@torch.no_grad()
def restart(
    descent: Descent,
    *,
    starts: int = 8,
    places: Float[Tensor, "*batch n k"] | None = None,
    random: torch.Generator | None = None,
) -> Int[Tensor, "*batch k"]:
    """The cheapest order that `starts` descents, each followed by `search`, arrive at.

    The first is the descent as it is. The others begin with noise on its start, and scale each set's step sizes.

    Args:
        descent: of an arrangement, as `arrangement.descent`; `dataclasses.replace(descent, steps=32)` takes more steps.
        starts: how many.
        places: for `search`, usually `arrangement.descent.places()`.
        random: where the noise comes from, on the CPU.
    """
    checks.integer("starts", starts, least=1)
    descents = chain([descent], (perturbed(descent, random) for _ in range(starts - 1)))
    orders = torch.stack([assign(each.soft(), each.mask) for each in descents])
    structure, costs = descent.structure, descent.weighted()
    return best_of(costs, structure, search(costs, structure, orders, places=places), places)


def perturbed(descent: Descent, random: torch.Generator | None = None) -> Descent:
    """The same costs from another start: noise on its scores, and a factor of its own on each set's step sizes."""
    relations, size = descent.centred.shape[-3:-1]
    batch = torch.broadcast_shapes(descent.centred.shape[:-3], descent.step_size.shape[:-1])

    def like(values: Tensor) -> Tensor:
        return values.to(descent.centred)

    start = like(torch.randn(*batch, size, size, generator=random)) * NOISE
    low, high = SPREAD
    factors = low + (high - low) * like(torch.rand(*batch, 1, generator=random))
    return replace(
        descent,
        start=start if descent.start is None else descent.start + start,
        step_size=(descent.step_size * factors).expand(*batch, relations),
    )
