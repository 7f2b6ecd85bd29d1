"""Insertion search on a sequence for many orders at once: every element in turn moves to its best place.

With A[i, j] what it costs that i stands before j rather than after it, moving i to stand behind the first m of the
others changes the cost by prefix sums alone: Σ_{k<m} A[π[k], i] = −Σ_{k<m} A[i, π[k]]. One pass over the others thus
prices every place for one element, and a sweep makes up to N moves in each order for the work of one round of
`search`, which prices every move of every element to make the best one.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Float, Int


def sweep(
    gains: Float[Tensor, "problems n n"],
    orders: Int[Tensor, "problems copies n"],
    sequence: list[int],
    tolerance: Float[Tensor, " problems"],
    deadline: float,
) -> Int[Tensor, "problems copies n"]:
    """Move one element after the other to its best place, until no insertion lowers the cost of any order.

    Args:
        gains: (problems, N, N), antisymmetric: A[i, j] is what it costs that i stands before j rather than after it.
        orders: (problems, copies, N), each a permutation.
        sequence: in which sequence the elements take their turns.
        tolerance: (problems,), a smaller improvement is a rounding error.
        deadline: on the clock of `time.perf_counter`; what has been reached by then is returned.
    """
    problems, copies, size = orders.shape
    columns = gains.permute(2, 0, 1).contiguous()  # (N, problems, N): one element against all others
    places = torch.arange(size, device=orders.device)
    problem = torch.arange(problems, device=orders.device).repeat_interleave(copies)
    result = orders.reshape(-1, size).clone()
    active = torch.arange(len(result), device=orders.device)
    while len(active):
        current, of = result[active], problem[active]
        ranks, least = current.argsort(-1), tolerance[of]
        moved = torch.zeros_like(active, dtype=torch.bool)
        for element in sequence:
            if time.perf_counter() > deadline:
                result[active] = current
                return result.reshape(orders.shape)
            # What it costs to stand behind the k-th, relative to standing in front of all
            behind = columns[element].index_select(0, of).gather(-1, current).cumsum(-1)
            cost, source = behind.amin(-1), ranks[:, element]
            improves = cost.clamp_max(0) < behind.gather(-1, source[:, None])[:, 0] - least
            rows = improves.nonzero()[:, 0]
            if not len(rows):
                continue
            moved |= improves
            source = source[rows]
            target = behind[rows].argmin(-1)
            target = torch.where(cost[rows] < 0, target + (target < source), 0)
            changed = current[rows].gather(-1, _insertion(places, source[:, None], target[:, None]))
            current[rows] = changed
            ranks[rows] = torch.empty_like(changed).scatter_(-1, changed, places.expand_as(changed))
        result[active] = current
        active = active[moved]
    return result.reshape(orders.shape)


def _insertion(places: Tensor, source: Tensor, target: Tensor) -> Tensor:
    """Which place each one is filled from when `source` goes to `target`, and all between move up by one."""
    up = ((places >= source) & (places < target)).long()
    down = ((places > target) & (places <= source)).long()
    return (places + up - down).scatter(-1, target, source)
