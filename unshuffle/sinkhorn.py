"""The Sinkhorn operator: scores to soft assignments (the paper's appendix B).

    S⁰(X) = exp(X / temperature)        Sˡ⁺¹(X) = T_c(T_r(Sˡ(X)))        S(X) = Sᴸ(X)

T_r divides every row by its sum, T_c every column. Each normalisation only scales rows or columns, so after l of
them the matrix is still diag(u_l) · K · diag(v_l) with K = exp(X / temperature): the 2L scaling *vectors* say
everything about the iterates, and the backward pass needs nothing else.

The operator is written twice, with the same arithmetic in exact numbers:

- `Scaled` keeps K and the vectors u and v themselves. It costs one exponential and 2L matrix-vector products, but
  overflows where a row of the scores spans more than the exponent of its dtype.
- `Logarithmic` keeps log u and log v. It costs 2L exponentials of the whole matrix, and holds for any finite scores.

Eager code on a CPU looks at K and takes the first where it is safe. Compiled code and other devices take the second,
where looking would be a graph break or a synchronisation, and exponentials are cheap.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from unshuffle import checks

if TYPE_CHECKING:
    from jaxtyping import Bool, Float


def sinkhorn(
    scores: Float[Tensor, "*batch n k"],
    *,
    iterations: int = 4,
    temperature: float = 1.0,
    mask: Bool[Tensor, "*batch n"] | None = None,
) -> Float[Tensor, "*batch n k"]:
    """Turn scores into a soft assignment of elements (rows) to positions (columns).

    Args:
        scores: (*batch, N, K), any finite numbers.
        iterations: L, how often rows and then columns are normalised. Columns sum to one exactly, rows in the limit.
        temperature: the scores are divided by it; the smaller, the harder the assignment.
        mask: (*batch, N), True for a real element. A set of n real elements takes the positions 0 to n - 1; every
            other entry is zero. Needs as many positions as elements.

    >>> import torch, unshuffle as us
    >>> us.sinkhorn(torch.tensor([[0.0, 9.0], [0.0, 0.0]])).round(decimals=2)
    tensor([[0., 1.],
            [1., 0.]])
    """
    checks.tensor("scores", scores, dims=2, layout="(*batch, N, K)")
    checks.integer("iterations", iterations, least=1)
    checks.positive("temperature", temperature)
    elements, positions = scores.shape[-2:]
    checks.mask(mask, scores.shape[:-2], elements)
    if mask is not None and elements != positions:
        raise ValueError(f"a masked set needs as many positions as elements, got scores {checks.describe(scores)}")
    with full_precision(scores):
        scores = at_least_float32(scores)
        sets = math.prod(scores.shape[:-2])
        flat = scores.reshape(sets, elements, positions)
        blocks = None if mask is None else Blocks(mask.expand(scores.shape[:-1]).reshape(sets, elements))
        return normalise(flat / temperature, blocks, iterations).reshape(scores.shape)


def full_precision(values: Tensor) -> torch.autocast:
    """Autocast has no say in the descent: bfloat16 cannot tell good assignments from very good ones."""
    return torch.autocast(values.device.type, enabled=False)


def at_least_float32(values: Tensor) -> Tensor:
    """Half precision cannot hold the descent; float64 stays what it is."""
    return values.float() if values.dtype in (torch.float16, torch.bfloat16) else values


class Blocks:
    """Which entries of a masked assignment belong together.

    Real elements go with the first n positions, padding with the rest. Real and padded blocks are normalised side by
    side, without influence on each other, so that no row or column is ever empty; the padded block is then erased.
    """

    def __init__(self, mask: Bool[Tensor, "*batch n"]) -> None:
        self.elements = mask
        count = mask.sum(-1, keepdim=True)
        self.positions = torch.arange(mask.shape[-1], device=mask.device) < count
        rows, columns = self.elements[..., :, None], self.positions[..., None, :]
        self.padded = ~(rows & columns)
        self.apart = rows != columns

    def uniform(self, dtype: torch.dtype) -> Float[Tensor, "*batch 1 k"]:
        """The row of a real element in the assignment that prefers nothing: 1/n on the first n positions."""
        positions = self.positions[..., None, :].to(dtype)
        return positions / positions.sum(-1, keepdim=True).clamp_min(1)


def normalise(scores: Tensor, blocks: Blocks | None, iterations: int) -> Tensor:
    """S(scores) for scores (B, N, K), without checks: what the descent calls at every step."""
    if blocks is None:
        return _normalise(scores, None, iterations)
    scores = scores.masked_fill(blocks.padded, 0.0)  # whatever stood in the padding, NaN included, is gone
    return _normalise(scores, blocks.apart, iterations).masked_fill(blocks.padded, 0.0)


def _normalise(scores: Tensor, apart: Tensor | None, iterations: int) -> Tensor:
    if scores.numel() == 0:
        return scores.exp()
    if scores.device.type == "cpu" and not torch.compiler.is_compiling():
        shift = scores.detach().amax(-1, keepdim=True)  # row-wise, which the first normalisation undoes
        kernel = (scores.detach() - shift).exp_()
        # Sums of rows and columns stay within a factor N of the smallest entry and its inverse: see docs/mathematics.md
        if kernel.amin().item() > torch.finfo(kernel.dtype).tiny ** 0.7:
            if apart is not None:
                kernel = kernel.masked_fill_(apart, 0.0)
            return _Scaled.apply(scores, kernel, iterations)
    if apart is not None:
        scores = scores.masked_fill(apart, float("-inf"))
    return _Logarithmic.apply(scores, iterations)[0]


class _Scaled(torch.autograd.Function):
    """diag(u) K diag(v), with u ← 1 / (K v) and v ← 1 / (Kᵀ u) in turn, from v = 1.

    Every vector is a row (B, 1, N), because row times matrix is the product that the BLAS does fastest.
    """

    @staticmethod
    def forward(ctx: Any, scores: Tensor, kernel: Tensor, iterations: int) -> Tensor:
        batch, elements, positions = kernel.shape
        u = kernel.new_empty(iterations, batch, 1, elements)
        v = kernel.new_ones(iterations + 1, batch, 1, positions)
        rows, columns, transposed = u.unbind(), v.unbind(), kernel.mT
        for step, row in enumerate(rows):
            torch.bmm(columns[step], transposed, out=row).reciprocal_()
            torch.bmm(row, kernel, out=columns[step + 1]).reciprocal_()
        ctx.save_for_backward(kernel, u, v)
        return (kernel * rows[-1].mT).mul_(columns[-1])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        """With p_l = v_l·∂log v_l and q_l = u_l·∂log u_l:  ∂X = K ∘ (∂P ∘ u_L v_Lᵀ − Σ_l u_l p_lᵀ + q_l v_{l−1}ᵀ)."""
        kernel, u, v = ctx.saved_tensors
        q, p = torch.empty_like(u), torch.empty_like(v[1:])
        rows, columns, transposed = u.unbind(), v.unbind(), kernel.mT
        direct = (grad * rows[-1].mT).mul_(columns[-1])  # ∂P ∘ u_L v_Lᵀ
        weighted = direct * kernel
        minus_u2, minus_v2 = (-u * u).unbind(), (-v * v).unbind()
        torch.mul(weighted.sum(-2, keepdim=True), columns[-1], out=p[-1])
        for step in range(len(rows) - 1, -1, -1):
            torch.bmm(p[step], transposed, out=q[step]).mul_(minus_u2[step])
            if step == len(rows) - 1:
                q[step].addcmul_(weighted.sum(-1).unsqueeze(-2), rows[step])
            if step:
                torch.bmm(q[step], kernel, out=p[step - 1]).mul_(minus_v2[step])
        left = torch.cat([u, q]).squeeze(2).permute(1, 2, 0)  # (B, N, 2L)
        right = torch.cat([p, v[:-1]]).squeeze(2).permute(1, 0, 2)  # (B, 2L, K)
        return direct.baddbmm_(left, right, alpha=-1).mul_(kernel), None, None


class _Logarithmic(torch.autograd.Function):
    """exp(X + f + g), with f ← −logsumexp(X + g) over columns and g ← −logsumexp(X + f) over rows, from g = 0."""

    @staticmethod
    def forward(scores: Tensor, iterations: int) -> tuple[Tensor, Tensor, Tensor]:
        column = scores.new_zeros(*scores.shape[:-2], 1, scores.shape[-1])
        rows, columns = [], [column]
        for _ in range(iterations):
            rows.append(-(scores + columns[-1]).logsumexp(-1, keepdim=True))
            columns.append(-(scores + rows[-1]).logsumexp(-2, keepdim=True))
        return (scores + rows[-1] + columns[-1]).exp(), torch.cat(rows, -1), torch.cat(columns, -2)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, int], output: tuple[Tensor, Tensor, Tensor]) -> None:
        scores, ctx.iterations = inputs
        _, rows, columns = output
        ctx.mark_non_differentiable(rows, columns)
        ctx.save_for_backward(scores, rows, columns)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor, None]:
        """Each potential's gradient flows through the softmax that it normalises."""
        scores, f, g = ctx.saved_tensors
        rows, columns = f.split(1, -1), g.split(1, -2)
        total = grad * (scores + rows[-1] + columns[-1]).exp()
        log_u, log_v = total.sum(-1, keepdim=True), total.sum(-2, keepdim=True)
        for step in range(ctx.iterations - 1, -1, -1):
            through_columns = log_v * (scores + rows[step] + columns[step + 1]).exp()
            log_u = log_u - through_columns.sum(-1, keepdim=True)
            through_rows = log_u * (scores + rows[step] + columns[step]).exp()
            log_v = -through_rows.sum(-2, keepdim=True)
            total = total - through_columns - through_rows
            log_u = torch.zeros_like(log_u)
        return total, None
