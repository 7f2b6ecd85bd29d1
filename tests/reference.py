"""The paper's equations written out with loops: slow, obvious, and what every fast function is compared with.

Positions of a lattice are row-major. Nothing here is imported from `unshuffle`.
"""

from __future__ import annotations

import itertools
import math

import torch
from torch import Tensor


def coordinates(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The coordinates of every position, row-major."""
    return list(itertools.product(*(range(length) for length in shape)))


def order_matrix(shape: tuple[int, ...], axis: int) -> Tensor:
    """O[k, k'] = +1 if k' lies after k on the same line of the axis, −1 if before, 0 otherwise."""
    places = coordinates(shape)
    matrix = torch.zeros(len(places), len(places), dtype=torch.float64)
    for k, here in enumerate(places):
        for other, there in enumerate(places):
            same_line = all(a == b for d, (a, b) in enumerate(zip(here, there, strict=True)) if d != axis)
            if same_line and there[axis] > here[axis]:
                matrix[k, other] = 1
            if same_line and there[axis] < here[axis]:
                matrix[k, other] = -1
    return matrix


def neighbour_matrix(shape: tuple[int, ...], axis: int) -> Tensor:
    """O[k, k'] = 1 if k' is the next position after k on the same line of the axis."""
    places = coordinates(shape)
    matrix = torch.zeros(len(places), len(places), dtype=torch.float64)
    for k, here in enumerate(places):
        for other, there in enumerate(places):
            if all(b - a == (1 if d == axis else 0) for d, (a, b) in enumerate(zip(here, there, strict=True))):
                matrix[k, other] = 1
    return matrix


def relation_matrices(shape: tuple[int, ...], neighbours: bool) -> list[Tensor]:
    axes = range(len(shape))
    orders = [order_matrix(shape, axis) for axis in axes]
    return orders + [neighbour_matrix(shape, axis) for axis in axes if neighbours]


def total_cost(costs: Tensor, soft: Tensor, matrices: list[Tensor]) -> float:
    """Σ_r Σ_ij C_r[i, j] Σ_kk' P[i, k] O_r[k, k'] P[j, k'], for one set."""
    size, total = soft.shape[0], 0.0
    for cost, matrix in zip(costs, matrices, strict=True):
        for i, j, k, other in itertools.product(range(size), repeat=4):
            if matrix[k, other]:
                total += float(cost[i, j] * soft[i, k] * matrix[k, other] * soft[j, other])
    return total


def gradient(costs: Tensor, soft: Tensor, matrices: list[Tensor]) -> Tensor:
    """∂c/∂P[p, q] = Σ_r Σ_jk' C_r[p, j] O_r[q, k'] P[j, k'] + C_r[j, p] O_r[k', q] P[j, k']."""
    size = soft.shape[0]
    result = torch.zeros_like(soft)
    for cost, matrix in zip(costs, matrices, strict=True):
        for p, q, j, k in itertools.product(range(size), repeat=4):
            result[p, q] += (cost[p, j] * matrix[q, k] + cost[j, p] * matrix[k, q]) * soft[j, k]
    return result


def sequence_gradient(cost: Tensor, soft: Tensor) -> Tensor:
    """The paper's equation 4: 2 Σ_j C_pj (Σ_{k' > q} P_jk' − Σ_{k' < q} P_jk')."""
    size = soft.shape[0]
    result = torch.zeros_like(soft)
    for p, q, j in itertools.product(range(size), repeat=3):
        result[p, q] += 2 * cost[p, j] * (soft[j, q + 1 :].sum() - soft[j, :q].sum())
    return result


def sinkhorn(scores: Tensor, iterations: int = 4, temperature: float = 1.0) -> Tensor:
    """S⁰ = exp(X / temperature), then rows and columns divided by their sums, L times."""
    rows, columns = scores.shape
    soft = [[math.exp(float(scores[i, k]) / temperature) for k in range(columns)] for i in range(rows)]
    for _ in range(iterations):
        for i in range(rows):
            total = sum(soft[i])
            soft[i] = [value / total for value in soft[i]]
        for k in range(columns):
            total = sum(soft[i][k] for i in range(rows))
            for i in range(rows):
                soft[i][k] /= total
    return torch.tensor(soft, dtype=torch.float64)


def normalise(cost: Tensor, neighbour: bool) -> Tensor:
    """Unit Frobenius norm; an order cost antisymmetric, a neighbour cost centred off its diagonal, which is dropped."""
    size = cost.shape[0]
    if not neighbour:
        cost = (cost - cost.T) / 2
    else:
        others = [(i, j) for i in range(size) for j in range(size) if i != j]
        mean = sum(float(cost[i, j]) for i, j in others) / max(len(others), 1)
        cost = torch.tensor(
            [[float(cost[i, j]) - mean if i != j else 0.0 for j in range(size)] for i in range(size)],
            dtype=torch.float64,
        )
    norm = math.sqrt(sum(float(value) ** 2 for value in cost.flatten()))
    return cost / norm if norm else cost


def descend(
    costs: Tensor,
    shape: tuple[int, ...],
    neighbours: bool,
    start: Tensor | None = None,
    steps: int = 4,
    step_sizes: list[float] | None = None,
    iterations: int = 4,
    temperature: float = 1.0,
) -> list[Tensor]:
    """The pseudo-code of appendix A for one set: every iterate P⁰ … Pᵀ."""
    size, matrices = costs.shape[-1], relation_matrices(shape, neighbours)
    step_sizes = step_sizes or [1.0] * len(matrices)
    weighted = torch.stack(
        [
            abs(eta) * normalise(cost, neighbour=r >= len(shape))
            for r, (cost, eta) in enumerate(zip(costs, step_sizes, strict=True))
        ]
    )
    scores = torch.zeros(size, size, dtype=torch.float64) if start is None else start
    iterates = []
    for _ in range(steps):
        iterates.append(sinkhorn(scores, iterations, temperature))
        scores = scores - gradient(weighted, iterates[-1], matrices)
    return [*iterates, sinkhorn(scores, iterations, temperature)]


def pairwise(x: Tensor, layers: list[tuple[Tensor, Tensor]], out: Tensor, orders: int) -> Tensor:
    """F(x_i, x_j) = f(x_i, x_j) − f(x_j, x_i) for the order outputs, f itself for the rest; f an MLP on [a; b]."""

    def f(a: Tensor, b: Tensor) -> Tensor:
        hidden = torch.cat([a, b])
        for weight, bias in layers:
            hidden = torch.relu(weight @ hidden + bias)
        return out @ hidden

    size = len(x)
    costs = torch.zeros(len(out), size, size, dtype=x.dtype)
    for i, j in itertools.product(range(size), repeat=2):
        forward, backward = f(x[i], x[j]), f(x[j], x[i])
        costs[:orders, i, j] = (forward - backward)[:orders]
        costs[orders:, i, j] = forward[orders:]
    return costs
