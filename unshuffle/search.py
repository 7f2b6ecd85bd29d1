"""Local search on hard orders: what the descent leaves undone, done with the same costs.

An order π puts element π[k] at position k; with D_r[k, k'] = C_r[π[k], π[k']] its cost is c = Σ_r ⟨O_r, D_r⟩, the total
cost of the corresponding permutation matrix; where elements prefer positions by themselves (a linear start), what
their places cost, Σ_k U[π[k], k], comes on top. A round evaluates every move of every set at once from differences of
that cost, and makes the best move of each set; it ends when no move lowers any cost.

Moves: exchanges of two positions; on a sequence insertions (take one out, put it back elsewhere); on a grid or lattice
exchanges of two rows or columns, and cyclic shifts of one line or of everything.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from unshuffle import checks
from unshuffle.descent import check_costs
from unshuffle.sinkhorn import at_least_float32
from unshuffle.structures import Lattice, Sequence

if TYPE_CHECKING:
    from jaxtyping import Float, Int

# Numbers in the table of line moves: beyond it (a 14×14 grid with neighbours) only exchanges are tried
LARGEST_TABLE = 2**27


@torch.no_grad()
def search(
    costs: Float[Tensor, "*batch r n n"],
    structure: Lattice,
    order: Int[Tensor, "*starts_and_batch n"],
    *,
    places: Float[Tensor, "*batch n n"] | None = None,
    rounds: int = 10_000,
) -> Int[Tensor, "*starts_and_batch n"]:
    """Improve hard orders by the best move, again and again, until no move lowers the total cost.

    Args:
        costs: (*batch, R, N, N), as they are: nothing is normalised. After a layer, `arrangement.weighted`.
        structure: what the elements are arranged on.
        order: (…, *batch, N), from `assign`; −1 past the end of a padded set. More leading dimensions than the costs
            have are several starts of each set; `best_of` picks the cheapest.
        places: (*batch, N, K), what it costs that an element stands at a position. After a layer with a start,
            `arrangement.descent.places()`.
        rounds: how many moves each set may make at the most.

    >>> import torch, unshuffle as us
    >>> numbers = torch.tensor([0.3, 0.1, 0.2])
    >>> us.search((numbers[:, None] - numbers)[None], us.Sequence(), torch.arange(3))
    tensor([1, 2, 0])
    """
    check_costs(costs, structure)
    check_order(order, costs)
    check_places(places, costs)
    checks.integer("rounds", rounds, least=0)
    size, relations = order.shape[-1], costs.shape[-3]
    sets = math.prod(order.shape[:-1])
    flat = at_least_float32(costs).expand(*order.shape[:-1], relations, size, size)
    flat = flat.reshape(sets, relations, size, size)
    alone = _for_each(places, order, flat)
    result = order.reshape(sets, size).clone()
    moves = [_Exchanges(structure, flat), *_other_moves(structure, flat)]
    # Differences below the rounding errors of a sum of costs would let the search run in circles
    tolerance = 1e-6 * (torch.linalg.vector_norm(flat, dim=(1, 2, 3)) + torch.linalg.vector_norm(alone, dim=(1, 2)))
    active = torch.arange(sets, device=order.device)
    for _ in range(rounds):
        if not len(active):
            break
        placed, real = _placed(flat[active], result[active]), result[active] >= 0
        changes = [family.changes(placed, real) for family in moves]  # each (sets, moves)
        if places is not None:
            standing = _standing(alone[active], result[active])
            changes = [change + family.shifts(standing) for change, family in zip(changes, moves, strict=True)]
        change, best = torch.cat(changes, -1).min(-1)
        improves = change < -tolerance[active]
        active, best = active[improves], best[improves]
        sources = torch.cat([family.sources for family in moves])  # (moves, K): which position each one takes from
        result[active] = result[active].gather(-1, sources[best])
    return result.reshape(order.shape)


def order_cost(
    costs: Float[Tensor, "*batch r n n"],
    structure: Lattice,
    order: Int[Tensor, "*starts_and_batch n"],
    places: Float[Tensor, "*batch n n"] | None = None,
) -> Float[Tensor, "*starts_and_batch"]:
    """The total cost of hard orders, and of their places, without a permutation matrix."""
    check_costs(costs, structure)
    check_order(order, costs)
    check_places(places, costs)
    size = order.shape[-1]
    flat = at_least_float32(costs).expand(*order.shape[:-1], *costs.shape[-3:])
    placed = _placed(flat.reshape(-1, *costs.shape[-3:]), order.reshape(-1, size))
    standing = _standing(_for_each(places, order, placed), order.reshape(-1, size))
    spent = (placed * _matrices(structure, placed)).sum((1, 2, 3)) + standing.diagonal(dim1=-2, dim2=-1).sum(-1)
    return spent.reshape(order.shape[:-1])


def best_of(
    costs: Float[Tensor, "*batch r n n"],
    structure: Lattice,
    orders: Int[Tensor, "starts *batch n"],
    places: Float[Tensor, "*batch n n"] | None = None,
) -> Int[Tensor, "*batch n"]:
    """The cheapest of several orders of each set."""
    best = order_cost(costs, structure, orders, places).argmin(0)
    return orders.gather(0, best[None, ..., None].expand(1, *orders.shape[1:]))[0]


def check_order(order: object, costs: Tensor) -> None:
    size, batch = costs.shape[-1], costs.shape[:-3]
    if not isinstance(order, Tensor) or order.dtype != torch.int64:
        raise TypeError(f"order must be an int64 tensor of element indices, got {checks.describe(order)}")
    if order.dim() < 1 or order.shape[-1] != size or order.shape[:-1][order.dim() - 1 - len(batch) :] != batch:
        raise ValueError(f"order must be (…, *batch, N) = (…, {', '.join(map(str, (*batch, size)))}), "
                         f"got {checks.describe(order)}")  # fmt: skip
    positions = torch.arange(size, device=order.device)
    count = (order >= 0).sum(-1, keepdim=True)
    # The real elements come first, each once; −1 fills the rest
    distinct = order.sort(-1).values
    distinct = (distinct[..., 1:] > distinct[..., :-1]) | (distinct[..., 1:] == -1)
    if not ((order >= 0) == (positions < count)).all() or not distinct.all() or (order >= size).any():
        raise ValueError("order must name each element at most once, from 0 to N − 1, with −1 only past the end")


def check_places(places: object, costs: Tensor) -> None:
    if places is None:
        return
    shape = (*costs.shape[:-3], *costs.shape[-2:])
    if checks.tensor("places", places, dims=2, layout="(*batch, N, K)").shape != shape:
        raise ValueError(f"places must be (*batch, N, K) = {shape}, got {checks.describe(places)}")


def _for_each(places: Tensor | None, order: Tensor, like: Tensor) -> Tensor:
    """U of every order, (sets, N, K); zero where there is none."""
    size = order.shape[-1]
    if places is None:
        return like.new_zeros(1, size, size).expand(len(like), size, size)
    return places.to(like.dtype).expand(*order.shape[:-1], size, size).reshape(-1, size, size)


def _standing(places: Tensor, order: Tensor) -> Tensor:
    """M[k, k'] = U[π[k], k'], what the element at k would pay at k'; zero past the end."""
    real = order >= 0
    rows = places.gather(1, order.clamp_min(0).unsqueeze(-1).expand(places.shape))
    return rows * (real[:, :, None] & real[:, None, :])


def _placed(costs: Tensor, order: Tensor) -> Tensor:
    """D_r[k, k'] = C_r[π[k], π[k']], zero on the diagonal and past the end."""
    size = order.shape[-1]
    index = order.clamp_min(0)
    rows = costs.gather(2, index[:, None, :, None].expand(costs.shape))
    placed = rows.gather(3, index[:, None, None, :].expand(costs.shape))
    real = order >= 0
    pairs = real[:, :, None] & real[:, None, :] & ~torch.eye(size, dtype=torch.bool, device=order.device)
    return placed * pairs.unsqueeze(1)


def _matrices(structure: Lattice, like: Tensor) -> Tensor:
    """O_r of every relation, (R, K, K)."""
    identity = torch.eye(like.shape[-1], dtype=like.dtype, device=like.device)
    return torch.stack([structure.apply_transposed(relation, identity) for relation in structure.relations])


class _Exchanges:
    """Two positions exchange their elements: Δ = S_ab + S_ba − S_aa − S_bb + (O_ab + O_ba)(D_ab + D_ba).

    Here S = O Dᵀ + Oᵀ D, summed over the relations, which the structure applies along its axes.
    """

    def __init__(self, structure: Lattice, costs: Tensor) -> None:
        self.structure = structure
        size = costs.shape[-1]
        self.adjacent = _matrices(structure, costs)
        self.adjacent = self.adjacent + self.adjacent.mT  # zero for an order
        self.first, self.second = torch.triu_indices(size, size, 1, device=costs.device)
        self.sources = exchanges(size).to(costs.device)

    def changes(self, placed: Tensor, real: Tensor) -> Tensor:
        total = torch.zeros_like(placed[:, 0])
        for relation, adjacent, d in zip(self.structure.relations, self.adjacent, placed.unbind(1), strict=True):
            forward = self.structure.apply(relation, d).mT  # O Dᵀ = (D Oᵀ)ᵀ
            backward = self.structure.apply_transposed(relation, d.mT).mT  # Oᵀ D = (Dᵀ O)ᵀ
            both = forward + backward
            own = both.diagonal(dim1=-2, dim2=-1)
            total += both + both.mT - own.unsqueeze(-1) - own.unsqueeze(-2) + adjacent * (d + d.mT)
        allowed = real[:, self.first] & real[:, self.second]
        return total[:, self.first, self.second].masked_fill(~allowed, torch.inf)

    def shifts(self, standing: Tensor) -> Tensor:
        """What the moves change in the costs of the places."""
        own = standing.diagonal(dim1=-2, dim2=-1)
        total = standing + standing.mT - own.unsqueeze(-1) - own.unsqueeze(-2)
        return total[:, self.first, self.second]


class _Insertions:
    """On a sequence: the element at `source` is taken out and put back at `target`, all between move up by one."""

    def __init__(self, structure: Lattice, costs: Tensor) -> None:
        self.neighbours = structure.neighbours
        size = costs.shape[-1]
        places = torch.arange(size, device=costs.device)
        source, target = torch.cartesian_prod(places, places).unbind(-1)
        moved = (source - target).abs() > 1  # by one place is an exchange
        self.source, self.target = source[moved], target[moved]
        later, k = self.target > self.source, places[None]
        low, high = torch.minimum(self.source, self.target)[:, None], torch.maximum(self.source, self.target)[:, None]
        shifted = torch.where(later[:, None], k + 1, k - 1)
        inside = (low <= k) & (k <= high)
        self.sources = torch.where(k == self.target[:, None], self.source[:, None], torch.where(inside, shifted, k))

    def changes(self, placed: Tensor, real: Tensor) -> Tensor:
        order = placed[:, 0] - placed[:, 0].mT
        running = 2 * order.cumsum(-1)  # D[source, ·] − D[·, source], over what the element passes
        source, target = self.source, self.target
        passed_after = running[:, source, target] - running[:, source, source]
        before = running[:, source, (source - 1).clamp_min(0)]
        passed_before = before - running[:, source, (target - 1).clamp_min(0)] * (target > 0)
        change = torch.where(target > source, -passed_after, passed_before)
        if self.neighbours:
            change = change + self._links(placed[:, 1])
        allowed = real[:, source] & real[:, target]
        return change.masked_fill(~allowed, torch.inf)

    def shifts(self, standing: Tensor) -> Tensor:
        own = standing.diagonal(dim1=-2, dim2=-1)
        down = (standing.diagonal(-1, -2, -1) - own[:, 1:]).cumsum(-1)  # the elements from k = 1 on, moved to k − 1
        up = (standing.diagonal(1, -2, -1) - own[:, :-1]).cumsum(-1)  # those up to k = N − 2, moved to k + 1
        passed = [torch.nn.functional.pad(moved, (1, 0)) for moved in (down, up)]
        source, target = self.source, self.target
        between = [moved[:, target] - moved[:, source] for moved in passed]
        return standing[:, source, target] - own[:, source] + torch.where(target > source, between[0], -between[1])

    def _links(self, d: Tensor) -> Tensor:
        """Three neighbour pairs are broken by the move, and three made."""
        ringed = torch.nn.functional.pad(d, (1, 1, 1, 1))  # no cost beyond either end
        source, target = self.source + 1, self.target + 1
        left = torch.where(target > source, target, target - 1)  # the element comes to stand between left and right
        right = left + 1

        def link(a: Tensor, b: Tensor) -> Tensor:
            return ringed[:, a, b]

        broken = link(source - 1, source) + link(source, source + 1) + link(left, right)
        return link(source - 1, source + 1) + link(left, source) + link(source, right) - broken


class _LineMoves:
    """On a lattice: exchanges of two slices, cyclic shifts of a line, cyclic shifts of everything.

    A move is a permutation of the positions, and its change of cost ⟨O moved − O, D⟩: all moves are one matrix product.
    """

    def __init__(self, structure: Lattice, costs: Tensor, sources: Tensor) -> None:
        self.sources = sources.to(costs.device)
        matrices = _matrices(structure, costs)  # (R, K, K)
        inverse = self.sources.argsort(-1)
        moved = matrices[:, inverse[:, :, None], inverse[:, None, :]]  # (R, moves, K, K)
        self.table = (moved - matrices.unsqueeze(1)).transpose(0, 1).flatten(1)  # (moves, R·K·K)
        identity = torch.eye(sources.shape[-1], dtype=costs.dtype, device=costs.device)
        self.shifted = (identity[self.sources].mT - identity).flatten(1)  # (moves, K·K)

    def changes(self, placed: Tensor, real: Tensor) -> Tensor:
        return placed.flatten(1) @ self.table.mT

    def shifts(self, standing: Tensor) -> Tensor:
        return standing.flatten(1) @ self.shifted.mT


def exchanges(size: int) -> Int[Tensor, "moves k"]:
    """Every exchange of two positions, as the positions that elements are taken from."""
    first, second = torch.triu_indices(size, size, 1)
    sources, rows = torch.arange(size).repeat(len(first), 1), torch.arange(len(first))
    sources[rows, first], sources[rows, second] = second, first
    return sources


def line_moves(shape: tuple[int, ...]) -> Int[Tensor, "moves k"]:
    """Every slice exchange and cyclic shift of a lattice, as the positions that elements are taken from."""
    places = torch.arange(math.prod(shape)).reshape(shape)
    moves = []
    for axis, length in enumerate(shape):
        for a, b in itertools.combinations(range(length), 2):
            index = list(range(length))
            index[a], index[b] = b, a
            moves.append(places.index_select(axis, torch.tensor(index)))
        lines = places.movedim(axis, -1).reshape(-1, length)  # one row a line
        for line, by in itertools.product(range(len(lines)), range(1, length)):
            shifted = lines.clone()
            shifted[line] = lines[line].roll(by)
            others = [n for d, n in enumerate(shape) if d != axis]
            moves.append(shifted.reshape(*others, length).movedim(-1, axis))
    axes = tuple(range(len(shape)))
    moves += [places.roll(by, axes) for by in itertools.product(*(range(n) for n in shape)) if any(by)]
    return torch.stack([move.flatten() for move in moves]).unique(dim=0) if moves else places.reshape(1, -1)


def _other_moves(structure: Lattice, costs: Tensor) -> list[_Insertions | _LineMoves]:
    if isinstance(structure, Sequence):
        return [_Insertions(structure, costs)]
    sources = line_moves(structure.shape)
    if len(sources) * costs.shape[1:].numel() > LARGEST_TABLE:
        return []
    return [_LineMoves(structure, costs, sources)]
