"""From soft assignments to arranged elements and exact orders."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor
from torch.utils._pytree import register_pytree_node

from unshuffle import checks
from unshuffle.descent import Descent

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


def apply(
    soft: Float[Tensor, "*batch n k"], x: Float[Tensor, "*batch n features"]
) -> Float[Tensor, "*batch k features"]:
    """The arranged elements y[k] = Σ_i P[i, k] · x[i]: Y = Pᵀ X with elements as rows of P, positions as columns.

    >>> import torch, unshuffle as us
    >>> us.apply(torch.tensor([[0.0, 1.0], [1.0, 0.0]]), torch.tensor([[5.0], [7.0]]))
    tensor([[7.],
            [5.]])
    """
    checks.tensor("soft", soft, dims=2, layout="(*batch, N, K)")
    checks.tensor("x", x, dims=2, layout="(*batch, N, features)")
    if soft.shape[-2] != x.shape[-2] or not checks.broadcasts(soft.shape[:-2], x.shape[:-2]):
        raise ValueError(
            f"soft (*batch, N, K) and x (*batch, N, features) must have the same batch and N, "
            f"got {checks.describe(soft)} and {checks.describe(x)}"
        )
    return soft.mT @ x.to(soft.dtype)


def assign(soft: Float[Tensor, "*batch n k"], mask: Bool[Tensor, "*batch n"] | None = None) -> Int[Tensor, "*batch k"]:
    """The exact order closest to a soft assignment: the permutation with the largest Σ P, by the Hungarian method.

    Args:
        soft: (*batch, N, K) with N = K.
        mask: (*batch, N), True for a real element.

    Returns `order`: order[k] is the element at position k, −1 past the end of a padded set.

    >>> import torch, unshuffle as us
    >>> us.assign(torch.tensor([[0.4, 0.6], [0.1, 0.9]]))
    tensor([0, 1])
    """
    checks.tensor("soft", soft, dims=2, layout="(*batch, N, K)")
    size = soft.shape[-1]
    if soft.shape[-2] != size:
        raise ValueError(f"soft must have as many positions as elements, got {checks.describe(soft)}")
    checks.mask(mask, soft.shape[:-2], size)
    batch = soft.shape[:-2]
    scores = soft.detach().reshape(-1, size, size)
    real = torch.ones(len(scores), size, dtype=torch.bool, device=soft.device)
    if mask is not None:
        real = mask.expand(*batch, size).reshape(-1, size)
        scores = scores.masked_fill(~real[:, :, None], 0.0)  # padding may hold anything
    finite = scores.isfinite().flatten(1).all(1)
    if not finite.all():
        item = int((~finite).nonzero()[0])
        index = tuple(int(i) for i in np.unravel_index(item, batch)) if batch else ()
        raise ValueError(f"soft must be finite, got NaN or infinity in batch item {index}")
    # Where every position prefers a different element, that is the optimum; only the rest needs the exact method
    best = scores.argmax(-2)
    counts = real.sum(-1)
    taken = torch.zeros_like(real).scatter(-1, best, True).all(-1) & (counts == size)
    order = best.where(taken[:, None], -1)
    rest = (~taken).nonzero()[:, 0]
    if len(rest):
        order[rest] = _hungarian(scores[rest], real[rest]).to(order.device)
    return order.reshape(*batch, size)


def _hungarian(scores: Tensor, real: Tensor) -> Tensor:
    """Maximise Σ P over one-to-one assignments of the real elements to the first positions, set by set."""
    solved = np.full((len(scores), scores.shape[-1]), -1)
    as_numpy = scores.cpu().to(torch.float64).numpy()
    for result, values, members in zip(solved, as_numpy, real.cpu().numpy(), strict=True):
        elements = members.nonzero()[0]
        rows, columns = linear_sum_assignment(values[elements, : len(elements)], maximize=True)
        result[columns] = elements[rows]
    return torch.from_numpy(solved)


def gather(x: Float[Tensor, "*batch n features"], order: Int[Tensor, "*batch k"]) -> Float[Tensor, "*batch k features"]:
    """The elements in an exact order; zeros where the order is −1."""
    index = order.clamp_min(0).unsqueeze(-1).expand(*order.shape, x.shape[-1])
    return x.gather(-2, index).masked_fill((order < 0).unsqueeze(-1), 0.0)


def permutation(order: Int[Tensor, "*batch k"], dtype: torch.dtype = torch.float32) -> Float[Tensor, "*batch n k"]:
    """An order as an assignment of zeros and ones: P[order[k], k] = 1."""
    elements = torch.arange(order.shape[-1], device=order.device)
    return (order.unsqueeze(-2) == elements[:, None]).to(dtype)


@dataclass(frozen=True, eq=False)
class Arrangement:
    """A set arranged on a structure: what `Arrange` returns.

    Attributes:
        elements: (*batch, K, features), the arranged elements: `apply(soft, x)`.
        soft: (*batch, N, K), the soft assignment.
        x: (*batch, N, features), the set as it came, its padding zeroed.
        descent: what led to `soft`: normalised costs, structure, start, steps, step sizes and mask.
    """

    elements: Float[Tensor, "*batch k features"]
    soft: Float[Tensor, "*batch n k"]
    x: Float[Tensor, "*batch n features"]
    descent: Descent

    @property
    def costs(self) -> Float[Tensor, "*batch r n n"]:
        """The paper's C of each relation: centred, and of unit Frobenius norm."""
        return self.descent.costs()

    @property
    def weighted(self) -> Float[Tensor, "*batch r n n"]:
        """The costs, each times its step size: their total is what the descent lowers, and what `search` should."""
        return self.descent.weighted()

    @property
    def order(self) -> Int[Tensor, "*batch k"]:
        """The exact order, by the Hungarian method; −1 past the end of a padded set."""
        return assign(self.soft, self.descent.mask)

    @property
    def trajectory(self) -> Float[Tensor, "steps+1 *batch n k"]:
        """Every iterate of the descent, computed again."""
        return self.descent.trajectory()

    def hard(self) -> Float[Tensor, "*batch k features"]:
        """The elements in the exact order, zeros past the end of a padded set. Gradients reach x, not the order."""
        return gather(self.x, self.order)

    def entropy(self) -> Float[Tensor, "*batch"]:
        """How undecided the assignment is: −Σ P log P over the positions in use, 0 if hard, log n if uniform."""
        mask = self.descent.mask
        count = self.soft.new_tensor(self.soft.shape[-1]) if mask is None else mask.sum(-1)
        return torch.special.entr(self.soft).sum((-2, -1)) / count.clamp_min(1)

    def __repr__(self) -> str:
        return f"Arrangement({tuple(self.elements.shape)} on {self.descent.structure!r}, steps={self.descent.steps})"


def _flatten(arrangement: Arrangement) -> tuple[list[Tensor | None], tuple[object, ...]]:
    d = arrangement.descent
    tensors = [arrangement.elements, arrangement.soft, arrangement.x, d.centred, d.start, d.step_size, d.mask]
    return tensors, (d.structure, d.steps, d.iterations, d.temperature)


def _unflatten(values: Iterable[Any], context: Any) -> Arrangement:
    elements, soft, x, centred, start, step_size, mask = values
    structure, steps, iterations, temperature = context
    return Arrangement(
        elements, soft, x, Descent(centred, structure, start, steps, step_size, iterations, temperature, mask)
    )


# `torch.export` takes outputs apart into tensors, and puts them together again
register_pytree_node(Arrangement, _flatten, _unflatten, serialized_type_name="unshuffle.Arrangement")
