"""What a set can be arranged on: a sequence, a grid, a lattice of any dimension.

A structure over K positions has relations between positions. Relation r is a K×K matrix O_r that is never built: it
is applied to an assignment P along one axis of the lattice. Positions are row-major: on a grid, position k is row
k // cols, column k % cols.

- `Order(axis)`: O[k, k'] is +1 if k' lies after k on the same line of that axis, −1 if before, 0 otherwise.
- `Neighbour(axis)`: O[k, k'] is 1 if k' is the next position after k on that line, 0 otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import pad

from unshuffle import checks

if TYPE_CHECKING:
    from jaxtyping import Bool, Float


@dataclass(frozen=True)
class Order:
    """Before or after, anywhere on a line: the paper's relation. Only the antisymmetric part of a cost matters."""

    axis: int

    def apply(self, soft: Tensor, dim: int) -> Tensor:
        """P Oᵀ along `dim`: what lies after each position minus what lies before it."""
        return _SuffixMinusPrefix.apply(soft, dim, 1.0)

    def apply_transposed(self, soft: Tensor, dim: int) -> Tensor:
        """P O along `dim`."""
        return _SuffixMinusPrefix.apply(soft, dim, -1.0)

    def gradient_blocks(self, soft: Tensor, dim: int) -> tuple[Tensor, ...]:
        """The position side of ∂c/∂P: for antisymmetric C both terms are equal, C · 2 P Oᵀ."""
        return (_SuffixMinusPrefix.apply(soft, dim, 2.0),)

    @staticmethod
    def cost_blocks(costs: Tensor) -> tuple[Tensor, ...]:
        """The cost side of ∂c/∂P."""
        return (costs,)

    @staticmethod
    def centre(costs: Tensor, pairs: Tensor | None) -> Tensor:
        """The part of the costs that the relation can see: (C − Cᵀ) / 2, over the pairs of real elements."""
        costs = antisymmetric(costs, 0.5)
        return costs if pairs is None else costs.masked_fill(~pairs, 0.0)


@dataclass(frozen=True)
class Neighbour:
    """Directly before, on a line: how badly i goes next to j, in that order."""

    axis: int

    def apply(self, soft: Tensor, dim: int) -> Tensor:
        """P Oᵀ along `dim`: what stands at the next position."""
        return _shift(soft, dim, 1)

    def apply_transposed(self, soft: Tensor, dim: int) -> Tensor:
        """P O along `dim`: what stands at the position before."""
        return _shift(soft, dim, -1)

    def gradient_blocks(self, soft: Tensor, dim: int) -> tuple[Tensor, ...]:
        """P Oᵀ and P O: nothing relates the two here."""
        return self.apply(soft, dim), self.apply_transposed(soft, dim)

    @staticmethod
    def cost_blocks(costs: Tensor) -> tuple[Tensor, ...]:
        return costs, costs.mT

    @staticmethod
    def centre(costs: Tensor, pairs: Tensor | None) -> Tensor:
        """No element stands next to itself, and a constant changes nothing: mean 0 off the diagonal, 0 on it."""
        size = costs.shape[-1]
        others = ~torch.eye(size, dtype=torch.bool, device=costs.device)
        others = others if pairs is None else others & pairs
        costs = costs.masked_fill(~others, 0.0)
        count = others.sum((-2, -1), keepdim=True).clamp_min(1)
        centred = (costs - costs.sum((-2, -1), keepdim=True) / count).masked_fill(~others, 0.0)
        return centred * more_than_rounding(centred, costs)


Relation = Order | Neighbour

SMALL = 32  # positions up to which one small matrix is quicker than a walk along the axes


class _SuffixMinusPrefix(torch.autograd.Function):
    """scale · (Σ after − Σ before) along one dimension. The matrix is antisymmetric: its gradient is its negative."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, dim: int, scale: float) -> Tensor:
        ctx.dim, ctx.scale = dim, scale
        running = values.cumsum(dim)
        if (
            torch.compiler.is_compiling()
        ):  # for sizes it does not know, its loops read the last sum before it is written
            return scale * (values.sum(dim, keepdim=True) - 2 * running + values)
        total = running.narrow(dim, running.shape[dim] - 1, 1) * scale
        return running.mul_(-2 * scale).add_(values, alpha=scale).add_(total)  # in place: memory is what this waits for

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return _SuffixMinusPrefix.apply(grad, ctx.dim, -ctx.scale), None, None


def antisymmetric(costs: Float[Tensor, "*batch n n"], scale: float) -> Float[Tensor, "*batch n n"]:
    """scale · (C − Cᵀ); exactly zero if all that is left are rounding errors."""
    return _Antisymmetric.apply(costs, scale)


class _Antisymmetric(torch.autograd.Function):
    """Self-adjoint, so that its gradient is itself."""

    @staticmethod
    def forward(ctx: Any, costs: Tensor, scale: float) -> Tensor:
        difference = costs - transpose(costs)
        factor = more_than_rounding(difference, costs) * scale
        ctx.save_for_backward(factor)
        return difference.mul_(factor)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (factor,) = ctx.saved_tensors
        return (grad - transpose(grad)).mul_(factor), None


def more_than_rounding(
    part: Float[Tensor, "*batch n n"], whole: Float[Tensor, "*batch n n"]
) -> Float[Tensor, "*batch 1 1"]:
    """1 where a difference of costs says something, 0 where it is at the level of the rounding errors in the costs.

    Equal elements compare as equal up to the last bit, and unit norm would turn these bits into a preference.
    """
    noise = 32 * torch.finfo(whole.dtype).eps * torch.linalg.vector_norm(whole.detach(), dim=(-2, -1), keepdim=True)
    return (torch.linalg.vector_norm(part.detach(), dim=(-2, -1), keepdim=True) > noise).to(whole.dtype)


def scale_to_norm(costs: Float[Tensor, "*batch n n"], norm: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch n n"]:
    """Costs of that Frobenius norm. A zero matrix stays zero, and passes gradients on as it would with norm 1."""
    return _ScaleToNorm.apply(costs, norm)


class _ScaleToNorm(torch.autograd.Function):
    """w C / ‖C‖, with ∂C = w / ‖C‖ · (∂ − Ĉ ⟨Ĉ, ∂⟩) and ∂w = ⟨Ĉ, ∂⟩: as few passes over N×N numbers as it takes."""

    @staticmethod
    def forward(ctx: Any, costs: Tensor, weight: Tensor) -> Tensor:
        norm = torch.linalg.vector_norm(costs, dim=(-2, -1))
        norm = norm.where(norm > 0, 1.0)
        ctx.save_for_backward(costs, norm, weight)
        return costs * (weight / norm)[..., None, None]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        costs, norm, weight = ctx.saved_tensors
        shape = grad.shape
        inner = torch.linalg.vecdot(grad.flatten(-2), costs.expand(shape).flatten(-2))  # ‖C‖ ⟨Ĉ, ∂⟩
        factor = (weight / norm)[..., None, None]
        of_costs = (grad * factor).addcmul_(costs, (inner / norm**2)[..., None, None] * factor, value=-1)
        return of_costs.sum_to_size(costs.shape), (inner / norm).sum_to_size(weight.shape)


def transpose(costs: Tensor) -> Tensor:
    """Cᵀ as a view that is quick to read.

    Reading down the columns of a matrix whose rows lie a multiple of 4 KiB apart evicts every cache line before its
    neighbours are used. A copy with one more cache line to a row costs less than a tenth of what that costs.
    """
    size = costs.shape[-1]
    if costs.device.type != "cpu" or size * costs.element_size() % 4096:
        return costs.mT
    return pad(costs, (0, 64 // costs.element_size()))[..., :size].mT


class _Stack(torch.autograd.Function):
    """P (B, N, K) · [O_1ᵀ, …] (K, blocks · K), with the blocks on top of each other: (B, blocks · N, K)."""

    @staticmethod
    def forward(ctx: Any, soft: Tensor, matrix: Tensor) -> Tensor:
        ctx.save_for_backward(matrix)
        batch, elements, positions = soft.shape
        beside = (soft.reshape(-1, positions) @ matrix).view(batch, elements, -1, positions)  # (B, N, blocks, K)
        return beside.transpose(1, 2).reshape(batch, -1, positions)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (matrix,) = ctx.saved_tensors
        batch, positions = grad.shape[0], grad.shape[-1]
        blocks = matrix.shape[1] // positions
        beside = grad.view(batch, blocks, -1, positions).transpose(1, 2)  # (B, N, blocks, K)
        return (beside.reshape(-1, blocks * positions) @ matrix.mT).view(batch, -1, positions), None


def concatenate(blocks: list[Tensor], dim: int) -> Tensor:
    return torch.cat(blocks, dim) if len(blocks) > 1 else blocks[0]  # torch copies even a single one


def _shift(values: Tensor, dim: int, by: int) -> Tensor:
    """values[k + by] at k, zero where there is no such position."""
    length = values.shape[dim]
    kept = values.narrow(dim, max(by, 0), length - 1)
    before, after = (0, 1) if by > 0 else (1, 0)
    return pad(kept, (*(0, 0) * (-dim - 1), before, after))


class Lattice:
    """Positions on a lattice of any dimension; `neighbours` adds the neighbour relations to the order relations.

    >>> Lattice(2, 3, 4).relations
    (Order(axis=0), Order(axis=1), Order(axis=2))
    """

    def __init__(self, *shape: int, neighbours: bool = False) -> None:
        if not shape:
            raise ValueError("a lattice needs at least one length, got none")
        self.shape: tuple[int, ...] = tuple(checks.integer("a length of a lattice", n, least=1) for n in shape)
        self._set_relations(len(shape), neighbours)

    def _set_relations(self, axes: int, neighbours: bool) -> None:
        if not isinstance(neighbours, bool):
            raise TypeError(f"neighbours must be True or False, got {checks.describe(neighbours)}")
        self.neighbours = neighbours
        orders = tuple(Order(axis) for axis in range(axes))
        self.relations: tuple[Relation, ...] = orders + tuple(Neighbour(a) for a in range(axes) if neighbours)

    def lengths(self, elements: int) -> tuple[int, ...]:
        """The length of each axis for a set of that many elements; says so if they do not fit."""
        positions = 1
        for length in self.shape:
            positions *= length
        if positions != elements:
            raise ValueError(f"{self!r} has {positions} positions and needs exactly as many elements, got {elements}")
        return self.shape

    def check_mask(self, mask: Bool[Tensor, "*batch n"] | None) -> None:
        if mask is not None:
            raise ValueError(
                f"{self!r} takes no mask: every position needs an element. Only a Sequence takes padded sets"
            )

    def apply(self, relation: Relation, soft: Float[Tensor, "*batch n k"]) -> Float[Tensor, "*batch n k"]:
        """P O_rᵀ."""
        lengths = self.lengths(soft.shape[-1])
        lattice = soft.unflatten(-1, lengths)  # (*batch, N, *lengths)
        return relation.apply(lattice, relation.axis - len(lengths)).flatten(-len(lengths))

    def apply_transposed(self, relation: Relation, soft: Float[Tensor, "*batch n k"]) -> Float[Tensor, "*batch n k"]:
        """P O_r."""
        lengths = self.lengths(soft.shape[-1])
        lattice = soft.unflatten(-1, lengths)  # (*batch, N, *lengths)
        return relation.apply_transposed(lattice, relation.axis - len(lengths)).flatten(-len(lengths))

    def gradient_blocks(self, soft: Float[Tensor, "*batch n k"]) -> list[Float[Tensor, "*batch n k"]]:
        """[P O_1ᵀ, …]: the factors of ∂c/∂P that depend on the assignment, in the order of `cost_blocks`."""
        lengths = self.lengths(soft.shape[-1])
        lattice = soft.unflatten(-1, lengths)
        blocks = [r.gradient_blocks(lattice, r.axis - len(lengths)) for r in self.relations]
        return [block.flatten(-len(lengths)) for group in blocks for block in group]

    def stacking(self, like: Float[Tensor, "b n k"]) -> Callable[[Tensor], Tensor]:
        """A function from P (B, N, K) to its gradient blocks on top of each other, (B, blocks · N, K).

        What all relations together make of a few positions is one small matrix, found once from the identity; for more
        positions, walking along the axes costs less.
        """
        positions = like.shape[-1]
        if positions > SMALL:
            return lambda soft: concatenate(self.gradient_blocks(soft), -2)
        identity = torch.eye(positions, dtype=like.dtype, device=like.device)
        matrix = concatenate(self.gradient_blocks(identity), -1)  # (K, blocks · K)
        return lambda soft: _Stack.apply(soft, matrix)

    def cost_blocks(self, costs: Float[Tensor, "*batch r n n"]) -> list[Float[Tensor, "*batch n n"]]:
        """[C_1, …]: the factors of ∂c/∂P that depend on the costs, which `centre` has made antisymmetric."""
        blocks = [r.cost_blocks(c) for r, c in zip(self.relations, costs.unbind(-3), strict=True)]
        return [block for group in blocks for block in group]

    def centre(
        self, costs: Float[Tensor, "*batch r n n"], mask: Bool[Tensor, "*batch n"] | None = None
    ) -> Float[Tensor, "*batch r n n"]:
        """Drop from every C_r what its relation cannot see, and what concerns padding."""
        pairs = None if mask is None else (mask[..., :, None] & mask[..., None, :]).unsqueeze(-3)
        axes = sum(isinstance(relation, Order) for relation in self.relations)
        order, neighbour = costs[..., :axes, :, :], costs[..., axes:, :, :]
        if not self.neighbours:
            return Order.centre(order, pairs)
        return torch.cat([Order.centre(order, pairs), Neighbour.centre(neighbour, pairs)], -3)

    def __repr__(self) -> str:
        arguments = [str(length) for length in self.shape] + ["neighbours=True"] * self.neighbours
        return f"{type(self).__name__}({', '.join(arguments)})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


class Grid(Lattice):
    """rows × cols positions, row-major. Axis 0 runs down the columns, axis 1 along the rows.

    >>> Grid(2, 3, neighbours=True).relations
    (Order(axis=0), Order(axis=1), Neighbour(axis=0), Neighbour(axis=1))
    """

    def __init__(self, rows: int, cols: int, neighbours: bool = False) -> None:
        super().__init__(rows, cols, neighbours=neighbours)


class Sequence(Lattice):
    """A line of as many positions as the set has elements; the one structure for sets of varying size.

    >>> Sequence().relations
    (Order(axis=0),)
    """

    shape: tuple[int, ...] = ()

    def __init__(self, neighbours: bool = False) -> None:
        self._set_relations(1, neighbours)

    def lengths(self, elements: int) -> tuple[int, ...]:
        return (elements,)

    def check_mask(self, mask: Bool[Tensor, "*batch n"] | None) -> None:
        pass
