"""The best order of items for which every pair has a cost: the linear ordering problem.

    minimise over π    Σ_{k<k'} C[π[k], π[k']]

This is the paper's inner problem on a sequence, solved for its own sake. The descent finds the neighbourhood of good
orders from several step sizes and starts; what is left to do is combinatorial, and done by a population of orders that
breed: a child takes for each element the mean of its ranks in two parents, with a little noise, and is brought to the
nearest order that no insertion improves. The best distinct orders live on. (Rank crossover with insertion search, after
Schiavinotto and Stützle, *The linear ordering problem: instances, search space analysis and algorithms*, 2004.)
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from unshuffle import checks
from unshuffle.assignment import assign
from unshuffle.descent import descend
from unshuffle.insertion import sweep
from unshuffle.structures import Sequence

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

STEP_SIZES = (4.0, 10.0, 25.0)  # of the descents, in turns; costs have unit norm
STEPS, ITERATIONS = 20, 20  # of each descent
NOISE = 1.0  # standard deviation of what is added to the starts of the second three descents and later ones
MUTATION = 0.07  # standard deviation of the noise on a child's ranks, as a share of N
PATIENCE = 8  # generations without a better order, after which a problem is taken to be solved
TOGETHER = 2**18  # numbers in the populations of the problems that are solved side by side


@torch.no_grad()
def order(
    costs: Float[Tensor, "*batch n n"],
    *,
    mask: Bool[Tensor, "*batch n"] | None = None,
    generations: int = 40,
    seconds: float = 1.0,
    random: torch.Generator | None = None,
) -> Int[Tensor, "*batch n"]:
    """Put items in the order with the lowest Σ costs[i, j] over all pairs where i stands before j, or close to it.

    Args:
        costs: (*batch, N, N), any finite numbers: costs[i, j] is the cost of i standing somewhere before j. Only
            costs[i, j] − costs[j, i] matters, and the diagonal does not. Preferences are costs with a minus.
        mask: (*batch, N), True for a real element; what the costs say about the others is not read.
        generations: how often the population breeds at the most; 0 leaves it at descents and insertion search.
        seconds: for each problem of the batch; when they are over, the best order so far is returned. Within them the
            result depends on nothing but the arguments. Descents of hundreds of items are not cut, and take longer.
        random: where the noise comes from, on the CPU; by default the same at every call.

    Returns (*batch, N): order[k] is the item at position k, −1 past the end of a padded set.

    >>> import torch, unshuffle as us
    >>> wins = torch.tensor([[0.0, 1.0, 5.0], [4.0, 0.0, 2.0], [0.0, 3.0, 0.0]])  # how often i won against j
    >>> us.order(-wins)
    tensor([1, 0, 2])
    """
    checks.tensor("costs", costs, dims=2, layout="(*batch, N, N)")
    if costs.shape[-1] != costs.shape[-2]:
        raise ValueError(f"costs must be (*batch, N, N), got {checks.describe(costs)}")
    batch, size = costs.shape[:-2], costs.shape[-1]
    checks.mask(mask, batch, size)
    checks.integer("generations", generations, least=0)
    checks.positive("seconds", seconds)
    if mask is None:
        mask = torch.ones(size, dtype=torch.bool, device=costs.device)
    batch = torch.broadcast_shapes(batch, mask.shape[:-1])
    costs, real = costs.expand(*batch, size, size), mask.expand(*batch, size)
    gains = _gains(costs, real).reshape(math.prod(batch), size, size)
    if gains.numel() == 0:
        return torch.arange(size, device=costs.device).expand(*batch, size).clone()
    state = (torch.Generator().manual_seed(0) if random is None else random).get_state()
    at_once = max(1, TOGETHER // (_copies(size) * size))
    parts = []
    for part in gains.split(at_once):
        # Every problem meets the same noise, so that none depends on its company
        noise = torch.Generator()
        noise.set_state(state)
        parts.append(_solve(part, generations, seconds * len(part), noise))
    if random is not None:
        random.set_state(noise.get_state())
    found = torch.cat(parts).reshape(*batch, size).to(costs.device)
    # Padding costs nothing wherever it stands: take it out
    padded = ~real.gather(-1, found)
    return found.gather(-1, padded.long().argsort(dim=-1, stable=True)).masked_fill(
        padded.sort(dim=-1, stable=True).values, -1
    )


def _gains(costs: Tensor, real: Tensor) -> Tensor:
    """A = C − Cᵀ over the real pairs in float64, scaled by a power of two, which is exact and keeps sums finite."""
    pairs = real.unsqueeze(-1) & real.unsqueeze(-2)
    costs = costs.masked_fill(~pairs, 0.0)  # whatever stood in the padding, NaN included, is gone
    if not costs.isfinite().all():
        index = tuple((~costs.isfinite()).nonzero()[0].tolist())
        raise ValueError(f"costs must be finite, got {costs[index].item()} at {index}")
    if costs.device.type == "mps":  # which has no float64
        costs = costs.cpu()
    exponent = costs.abs().amax((-2, -1), keepdim=True).double().frexp().exponent if costs.numel() else 0
    scaled = torch.ldexp(costs.double(), -torch.as_tensor(exponent, device=costs.device))
    return scaled - scaled.mT


def _copies(size: int) -> int:
    """Orders in a population: fewer of long ones, which take longer."""
    return max(16, min(96, 2**14 // size))


def _solve(gains: Tensor, generations: int, seconds: float, noise: torch.Generator) -> Tensor:
    """The best order found of each problem (problems, N, N), all of the same size."""
    deadline = time.perf_counter() + seconds
    problems, size = gains.shape[:2]
    tolerance = 1e-13 * gains.abs().sum((1, 2)).clamp_min(1e-300)
    orders = sweep(gains, _starts(gains, noise), _turns(size, noise), tolerance, deadline)
    values = order_values(gains, orders)
    orders, values = _survivors(orders, values, tolerance, orders.shape[1])
    best = orders[:, 0].clone()
    open_, waited = torch.arange(problems, device=gains.device), torch.zeros(problems, device=gains.device)
    for _ in range(generations):
        if not len(open_) or time.perf_counter() > deadline:
            break
        children = _children(orders, noise)
        children = sweep(gains, children, _turns(size, noise), tolerance, deadline)
        both = torch.cat([orders, children], 1), torch.cat([values, order_values(gains, children)], 1)
        before = values[:, 0]
        orders, values = _survivors(*both, tolerance, orders.shape[1])
        best[open_] = orders[:, 0]
        waited = torch.where(values[:, 0] < before - tolerance, 0, waited + 1)
        kept = (waited < PATIENCE).nonzero()[:, 0]
        if len(kept) < len(open_):
            gains, tolerance, orders, values = gains[kept], tolerance[kept], orders[kept], values[kept]
            open_, waited = open_[kept], waited[kept]
    return best


def order_values(gains: Tensor, orders: Tensor) -> Tensor:
    """Σ_{k<k'} A[π[k], π[k']] of every order, (problems, copies)."""
    return torch.stack([_values(gain, some) for gain, some in zip(gains, orders, strict=True)])


def _values(gain: Tensor, orders: Tensor) -> Tensor:
    size = len(gain)
    placed = gain.take(orders[:, :, None] * size + orders[:, None, :])
    return placed.triu_(1).sum((1, 2))


def _starts(gains: Tensor, noise: torch.Generator) -> Tensor:
    """The first population: descents, sorted row sums, and these with noise up to orders without any sense."""
    problems, size = gains.shape[:2]
    copies = _copies(size)
    descents = max(1, min(9, 2**17 // size**2))
    start = torch.randn(descents, 1, size, size, generator=noise).to(gains.device) * NOISE
    start[: len(STEP_SIZES)] = 0
    steps = torch.tensor(STEP_SIZES, device=gains.device).repeat(descents)[:descents]
    soft = descend(
        gains.float().expand(descents, *gains.shape).unsqueeze(-3),
        Sequence(),
        start=start.expand(descents, problems, size, size),
        steps=STEPS,
        step_size=steps.reshape(-1, 1, 1),
        iterations=ITERATIONS,
    )
    sums = gains.sum(-1).argsort(-1).argsort(-1).double()  # who costs little before the others stands in front
    spread = torch.linspace(0, 1, copies - descents, dtype=gains.dtype)[:, None] * size
    disturbed = spread * torch.randn(copies - descents, size, generator=noise, dtype=gains.dtype)
    return torch.cat([assign(soft).transpose(0, 1), (sums[:, None] + disturbed.to(gains.device)).argsort(-1)], 1)


def _children(orders: Tensor, noise: torch.Generator) -> Tensor:
    """As many children as there are orders, each by the mean ranks of two of them."""
    copies, size = orders.shape[1:]
    ranks = orders.argsort(-1).double()
    first, second = torch.randint(copies, (2, copies), generator=noise).to(orders.device)
    mutation = torch.randn(copies, size, generator=noise, dtype=torch.float64) * (MUTATION * size)
    return ((ranks[:, first] + ranks[:, second]) / 2 + mutation.to(orders.device)).argsort(-1)


def _survivors(orders: Tensor, values: Tensor, tolerance: Tensor, copies: int) -> tuple[Tensor, Tensor]:
    """The cheapest orders, best first; of those that cost the same only one, while there are enough."""
    values, index = values.sort(dim=-1, stable=True)
    again = torch.zeros_like(values, dtype=torch.bool)
    again[:, 1:] = values.diff(dim=-1) <= tolerance[:, None]
    chosen = again.long().argsort(dim=-1, stable=True)[:, :copies]
    orders = orders.take_along_dim(index.gather(-1, chosen).unsqueeze(-1), 1)
    return orders, values.gather(-1, chosen)


def _turns(size: int, noise: torch.Generator) -> list[int]:
    return torch.randperm(size, generator=noise).tolist()
