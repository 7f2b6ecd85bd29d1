"""The total cost of an assignment, and the descent that lowers it (the paper's sections 2.1 to 2.3).

    c(P) = Σ_r Σ_ij C_r[i,j] · (P O_r Pᵀ)[i,j]        ∂c/∂P = Σ_r C_r P O_rᵀ + C_rᵀ P O_r

The paper's update changes the unnormalised P̃ by the gradient with respect to the normalised P:

    P = S(P̃)        P̃ ← P̃ − η ∂c/∂P

All relations go through one matrix product a step, [η_1 C_1, η_1 C_1ᵀ, …] · [P O_1ᵀ; P O_1; …].
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from unshuffle import checks
from unshuffle.sinkhorn import Blocks, at_least_float32, full_precision, normalise
from unshuffle.structures import Lattice, concatenate, scale_to_norm

if TYPE_CHECKING:
    from jaxtyping import Bool, Float


def total_cost(
    costs: Float[Tensor, "*batch r n n"], soft: Float[Tensor, "*batch n k"], structure: Lattice
) -> Float[Tensor, "*batch"]:
    """c(P), of the costs as they are: nothing is normalised here.

    >>> import torch, unshuffle as us
    >>> costs = torch.tensor([[[0.0, -1.0], [1.0, 0.0]]])  # the first element belongs before the second
    >>> us.total_cost(costs, torch.eye(2), us.Sequence())
    tensor(-2.)
    """
    check_costs(costs, structure)
    checks.tensor("soft", soft, dims=2, layout="(*batch, N, K)")
    if soft.shape[-2] != costs.shape[-1]:
        raise ValueError(
            f"soft must assign the {costs.shape[-1]} elements that costs compares, got {checks.describe(soft)}"
        )
    relations = zip(structure.relations, costs.unbind(-3), strict=True)
    products = [(soft * (cost @ structure.apply(relation, soft))).sum((-2, -1)) for relation, cost in relations]
    return torch.stack(products).sum(0)


def descend(
    costs: Float[Tensor, "*batch r n n"],
    structure: Lattice,
    *,
    start: Float[Tensor, "*batch n k"] | None = None,
    steps: int = 4,
    step_size: float | Float[Tensor, "*#batch #r"] = 1.0,
    iterations: int = 4,
    temperature: float = 1.0,
    mask: Bool[Tensor, "*batch n"] | None = None,
) -> Float[Tensor, "*batch n k"]:
    """Arrange the elements so that the total cost is low: T steps of the paper's descent, then a last Sinkhorn.

    Args:
        costs: (*batch, R, N, N), one matrix for each of `structure.relations`. They are centred and scaled to unit
            Frobenius norm first, so that neither their scale nor a constant matters.
        structure: what the elements are arranged on.
        start: P̃⁰, (*batch, N, K); None for the uniform start of PO-U.
        steps: T. 0 leaves the start as it is (LinAssign).
        step_size: η; its absolute value is used. A number, or a tensor that broadcasts to (*batch, R).
        iterations, temperature: of the Sinkhorn operator.
        mask: (*batch, N), True for a real element; for sequences.

    Returns the soft assignment, float32 or float64.

    >>> import torch, unshuffle as us
    >>> numbers = torch.tensor([0.3, 0.1, 0.2])
    >>> soft = us.descend((numbers[:, None] - numbers)[None], us.Sequence(), step_size=9.0)
    >>> numbers @ soft.round()
    tensor([0.1000, 0.2000, 0.3000])
    """
    descent = Descent.of(costs, structure, start, steps, step_size, iterations, temperature, mask)
    return descent.soft()


def trajectory(
    costs: Float[Tensor, "*batch r n n"],
    structure: Lattice,
    *,
    start: Float[Tensor, "*batch n k"] | None = None,
    steps: int = 4,
    step_size: float | Float[Tensor, "*#batch #r"] = 1.0,
    iterations: int = 4,
    temperature: float = 1.0,
    mask: Bool[Tensor, "*batch n"] | None = None,
) -> Float[Tensor, "steps+1 *batch n k"]:
    """Every iterate of `descend`, from the start to the result."""
    descent = Descent.of(costs, structure, start, steps, step_size, iterations, temperature, mask)
    return descent.trajectory()


@dataclass(frozen=True, eq=False)
class Descent:
    """A descent that is ready to run: everything checked, the costs centred but not yet scaled.

    centred (*batch, R, N, N), start (*batch, N, N) or None, step_size () or (*batch, R), mask (*batch, N) or None.
    """

    centred: Tensor
    structure: Lattice
    start: Tensor | None
    steps: int
    step_size: Tensor
    iterations: int
    temperature: float
    mask: Tensor | None

    @classmethod
    def of(
        cls,
        costs: Tensor,
        structure: Lattice,
        start: Tensor | None,
        steps: int,
        step_size: float | Tensor,
        iterations: int,
        temperature: float,
        mask: Tensor | None,
    ) -> Descent:
        """Check what came from outside, and bring it into form."""
        _check(costs, structure, start, steps, step_size, iterations, temperature, mask)
        with full_precision(costs):
            centred = structure.centre(at_least_float32(costs), mask)
        weights = torch.as_tensor(step_size, dtype=centred.dtype, device=centred.device).abs()
        return cls(centred, structure, start, steps, weights, iterations, temperature, mask)

    def costs(self) -> Tensor:
        """The paper's C_r, of unit Frobenius norm."""
        return scale_to_norm(self.centred, torch.ones_like(self.step_size))

    def weighted(self) -> Tensor:
        """|η_r| C_r, whose total is what the descent lowers."""
        return scale_to_norm(self.centred, self.step_size)

    def places(self) -> Tensor | None:
        """What the start says that an element's place costs, (*batch, N, N), beside `weighted`: −P̃⁰ / T.

        The last iterate is about S(P̃⁰ − T ∂c/∂P): T times the total cost stands against the start. It is the T of the
        training that tells how much the start counts; ask before `dataclasses.replace(descent, steps=…)`.
        """
        if self.start is None or not self.steps:
            return None
        shape = (*self.centred.shape[:-3], *self.centred.shape[-2:])
        return (self.start.to(self.centred.dtype) / -self.steps).expand(shape)

    def soft(self) -> Tensor:
        """The last iterate. Each of the others is dropped as the next one comes."""
        with full_precision(self.centred):
            for soft in self._iterates():
                last = soft
        return last

    def trajectory(self) -> Tensor:
        """Every iterate, (steps + 1, *batch, N, K)."""
        with full_precision(self.centred):
            return torch.stack(list(self._iterates()))

    def _iterates(self) -> Iterator[Tensor]:
        """Flatten the batch to one dimension, run, and yield P⁰, P¹, … Pᵀ in the caller's shape."""
        size = self.centred.shape[-1]
        costs = scale_to_norm(self.centred, -self.step_size)  # downhill
        batch = torch.broadcast_shapes(
            costs.shape[:-3],
            () if self.start is None else self.start.shape[:-2],
            () if self.mask is None else self.mask.shape[:-1],
        )
        sets = math.prod(batch)
        costs = costs.expand(*batch, *costs.shape[-3:]).reshape(sets, *costs.shape[-3:])
        scores = None
        if self.start is not None:
            scores = self.start.to(costs.dtype).expand(*batch, size, size).reshape(sets, size, size)
        blocks = None if self.mask is None else Blocks(self.mask.expand(*batch, size).reshape(sets, size))
        for soft in _iterate(costs, self.structure, scores, blocks, self.steps, self.iterations, self.temperature):
            yield soft.reshape(*batch, size, size)


def _iterate(
    costs: Tensor,
    structure: Lattice,
    start: Tensor | None,
    blocks: Blocks | None,
    steps: int,
    iterations: int,
    temperature: float,
) -> Iterator[Tensor]:
    """The optimisation itself, on −η_r C_r (B, R, N, N): P̃ ← P̃ + (−η C) (P Oᵀ)."""
    size = costs.shape[-1]
    stacked = structure.cost_blocks(costs)  # each (B, N, N)
    product = concatenate(stacked, -1)
    stack = structure.stacking(costs)
    scores = start
    if scores is None:
        # Every row of the uniform assignment is the same, so that the first product needs only the rows' sums
        row = costs.new_zeros(1, 1, size).softmax(-1) if blocks is None else blocks.uniform(costs.dtype)
        soft = row.expand(len(costs), size, size)
        yield soft if blocks is None else soft.masked_fill(blocks.padded, 0.0)
        if not steps:
            return
        sums = torch.stack([block.sum(-1) for block in stacked], -1)  # (B, N, blocks)
        scores = sums @ concatenate(structure.gradient_blocks(row), -2).expand(len(costs), -1, -1)
        steps -= 1
    for step in range(steps + 1):
        soft = normalise(scores if temperature == 1 else scores / temperature, blocks, iterations)
        yield soft
        if step < steps:
            scores = torch.baddbmm(scores, product, stack(soft))


def check_costs(costs: object, structure: object) -> None:
    if not isinstance(structure, Lattice):
        raise TypeError(f"structure must be a Sequence, Grid or Lattice, got {checks.describe(structure)}")
    relations = len(structure.relations)
    layout = f"(*batch, R, N, N) with R = {relations} relations of {structure!r}"
    checked = checks.tensor("costs", costs, dims=3, layout=layout)
    if checked.shape[-3] != relations or checked.shape[-2] != checked.shape[-1]:
        raise ValueError(f"costs must be {layout}, got {checks.describe(costs)}")
    structure.lengths(checked.shape[-1])


def _check(
    costs: Tensor,
    structure: Lattice,
    start: object,
    steps: object,
    step_size: object,
    iterations: object,
    temperature: object,
    mask: object,
) -> None:
    check_costs(costs, structure)
    batch, (relations, size) = costs.shape[:-3], costs.shape[-3:-1]
    if start is not None:
        checked = checks.tensor("start", start, dims=2, layout="(*batch, N, K)")
        if checked.shape[-2:] != (size, size) or not checks.broadcasts(checked.shape[:-2], batch):
            raise ValueError(f"start must be (*batch, N, K) = {(*batch, size, size)}, got {checks.describe(start)}")
    if isinstance(step_size, Tensor):
        shape = step_size.shape
        if shape and (shape[-1] not in (1, relations) or not checks.broadcasts(shape[:-1], batch)):
            raise ValueError(
                f"step_size must be a number or broadcast to (*batch, R) = {(*batch, relations)}, "
                f"got {checks.describe(step_size)}"
            )
    elif isinstance(step_size, bool) or not isinstance(step_size, (int, float)):
        raise TypeError(f"step_size must be a number or a tensor, got {checks.describe(step_size)}")
    checks.integer("steps", steps, least=0)
    checks.integer("iterations", iterations, least=1)
    checks.positive("temperature", temperature)
    checks.mask(mask, batch, size)
    structure.check_mask(mask)  # type: ignore[arg-type]
