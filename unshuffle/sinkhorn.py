"""The Sinkhorn operator: scores to soft assignments (the paper's appendix B).

    S⁰(X) = exp(X / temperature)        Sˡ⁺¹(X) = T_c(T_r(Sˡ(X)))        S(X) = Sᴸ(X)

T_r divides every row by its sum, T_c every column. Each normalisation only scales rows or columns, so after l of
them the matrix is still diag(u_l) · K · diag(v_l) with K = exp(X / temperature): the 2L scaling *vectors* say
everything about the iterates, and the backward pass needs nothing else.

The operator is written twice, with the same arithmetic in exact numbers:

- scaled: K and the vectors u and v themselves. It costs one exponential and 2L products of a matrix and a vector, but
  overflows for scores beyond what the exponent of their dtype can hold.
- logarithmic: log u and log v. It costs 2L exponentials of the whole matrix, and holds for any finite scores.

On a CPU we look at K and take the first where it is safe. Other devices take the second, where looking would be a
synchronisation and exponentials are cheap; so does the compiler for small sets, which it fuses into few loops.
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


TRACED = 64 * 64  # entries of an assignment up to which the compiler traces the operator


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
    >>> us.sinkhorn(torch.tensor([[0.0, 9.0], [9.0, 0.0]])).round(decimals=2)
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
    if scores.device.type == "cpu":
        if not torch.compiler.is_compiling():
            return _Eager.apply(scores, apart, iterations)
        if scores.shape[-2] * scores.shape[-1] > TRACED:
            return _opaque(scores, apart, iterations)[0]
    if apart is not None:
        scores = scores.masked_fill(apart, float("-inf"))
    return _Traced.apply(scores, iterations)


def _forward(scores: Tensor, apart: Tensor | None, iterations: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """S(scores), and what backward needs: K, u, v of the scaled form, or the scores, log u and log v."""
    kernel = scores.exp()
    low, high = kernel.aminmax()
    # u and v stay within the square of this range, which leaves room for every product: see docs/mathematics.md
    smallest = torch.finfo(kernel.dtype).tiny ** 0.35  # scores within ±30 in float32, ±248 in float64
    if low.item() > smallest and high.item() < 1 / smallest:
        if apart is not None:
            kernel.masked_fill_(apart, 0.0)
        soft, u, v = _scaled(kernel, iterations)
        return soft, kernel, u, v
    matrix = scores.clone() if apart is None else scores.masked_fill(apart, float("-inf"))
    soft, f, g = _logarithmic(matrix, iterations)
    return soft, matrix, f, g


def _backward(grad: Tensor, matrix: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    # The first scaling tells the forms apart: v = 1, log v = 0
    form = _scaled_backward if columns[0, 0, 0, 0].item() else _logarithmic_backward
    return form(grad, matrix, rows, columns)


def _scaled(kernel: Tensor, iterations: int) -> tuple[Tensor, Tensor, Tensor]:
    """diag(u) K diag(v), with u ← 1 / (K v) and v ← 1 / (Kᵀ u) in turn, from v = 1.

    Every vector is a row (B, 1, N), because row times matrix is the product that the BLAS does fastest.
    """
    batch, elements, positions = kernel.shape
    u = kernel.new_empty(iterations, batch, 1, elements)
    v = kernel.new_ones(iterations + 1, batch, 1, positions)
    rows, columns, transposed = u.unbind(), v.unbind(), kernel.mT
    for step, row in enumerate(rows):
        torch.bmm(columns[step], transposed, out=row).reciprocal_()
        torch.bmm(row, kernel, out=columns[step + 1]).reciprocal_()
    return (kernel * rows[-1].mT).mul_(columns[-1]), u, v


def _scaled_backward(grad: Tensor, kernel: Tensor, u: Tensor, v: Tensor) -> Tensor:
    """With p_l = v_l·∂log v_l and q_l = u_l·∂log u_l:  ∂X = K ∘ (∂P ∘ u_L v_Lᵀ − Σ_l u_l p_lᵀ + q_l v_{l−1}ᵀ)."""
    q, p = torch.empty_like(u), torch.empty_like(v[1:])
    transposed = kernel.mT
    direct = (grad * u[-1].mT).mul_(v[-1])  # ∂P ∘ u_L v_Lᵀ
    weighted = direct * kernel
    ps, qs, rows, columns = p.unbind(), q.unbind(), u.unbind(), v.unbind()
    minus_u, minus_v = (-u).unbind(), (-v).unbind()
    torch.mul(weighted.sum(-2, keepdim=True), columns[-1], out=ps[-1])
    for step in range(len(qs) - 1, -1, -1):
        torch.bmm(ps[step], transposed, out=qs[step]).mul_(rows[step]).mul_(minus_u[step])  # u² by itself may overflow
        if step == len(qs) - 1:
            qs[step].addcmul_(weighted.sum(-1).unsqueeze(-2), rows[-1])
        if step:
            torch.bmm(qs[step], kernel, out=ps[step - 1]).mul_(columns[step]).mul_(minus_v[step])
    left = torch.cat([u, q]).squeeze(2).permute(1, 2, 0)  # (B, N, 2L)
    right = torch.cat([p, v[:-1]]).squeeze(2).permute(1, 0, 2)  # (B, 2L, K)
    return direct.baddbmm_(left, right, alpha=-1).mul_(kernel)


def _logarithmic(scores: Tensor, iterations: int) -> tuple[Tensor, Tensor, Tensor]:
    """exp(X + f + g), with f ← −logsumexp(X + g) over columns and g ← −logsumexp(X + f) over rows, from g = 0."""
    rows, columns = [], [torch.zeros_like(scores[:, :1])]
    for _ in range(iterations):
        rows.append(-(scores + columns[-1]).logsumexp(-1, keepdim=True))
        columns.append(-(scores + rows[-1]).logsumexp(-2, keepdim=True))
    # f as (L, B, 1, N) and g as (L + 1, B, 1, K), like u and v
    return (scores + rows[-1] + columns[-1]).exp(), torch.stack(rows).mT, torch.stack(columns)


def _logarithmic_backward(grad: Tensor, scores: Tensor, f: Tensor, g: Tensor) -> Tensor:
    """Each potential's gradient flows through the softmax that it normalises."""
    rows, columns = f.mT.unbind(), g.unbind()
    total = grad * (scores + rows[-1] + columns[-1]).exp()
    of_row, of_column = total.sum(-1, keepdim=True), total.sum(-2, keepdim=True)
    for step in range(len(rows) - 1, -1, -1):
        through_columns = of_column * (scores + rows[step] + columns[step + 1]).exp()
        of_row = of_row - through_columns.sum(-1, keepdim=True)
        through_rows = of_row * (scores + rows[step] + columns[step]).exp()
        of_column = -through_rows.sum(-2, keepdim=True)
        total = total - through_columns - through_rows
        of_row = torch.zeros_like(of_row)
    return total


class _Eager(torch.autograd.Function):
    """Either form, by a look at the scores."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, apart: Tensor | None, iterations: int) -> Tensor:
        soft, *saved = _forward(scores, apart, iterations)
        ctx.save_for_backward(*saved)
        return soft

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return _backward(grad, *ctx.saved_tensors), None, None


class _Traced(torch.autograd.Function):
    """The logarithmic form, for the compiler and for other devices: nothing here looks at a number."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, iterations: int) -> Tensor:
        soft, f, g = _logarithmic(scores, iterations)
        ctx.save_for_backward(scores, f, g)
        return soft

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _logarithmic_backward(grad, *ctx.saved_tensors), None


# What `_Eager` does, as an operator that the compiler calls as it is: large sets gain nothing from fused exponentials
@torch.library.custom_op("unshuffle::sinkhorn", mutates_args=())
def _opaque(scores: Tensor, apart: Tensor | None, iterations: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return _forward(scores, apart, iterations)


@torch.library.custom_op("unshuffle::sinkhorn_backward", mutates_args=())
def _opaque_backward(grad: Tensor, matrix: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    return _backward(grad, matrix, rows, columns)


@_opaque.register_fake
def _(scores: Tensor, apart: Tensor | None, iterations: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    batch, elements, positions = scores.shape
    rows = scores.new_empty(iterations, batch, 1, elements)
    columns = scores.new_empty(iterations + 1, batch, 1, positions)
    return torch.empty_like(scores), torch.empty_like(scores), rows, columns


@_opaque_backward.register_fake
def _(grad: Tensor, matrix: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    return torch.empty_like(matrix)


def _save(ctx: Any, inputs: tuple[Tensor, Tensor | None, int], output: tuple[Tensor, ...]) -> None:
    ctx.save_for_backward(*output[1:])


def _through(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor, None, None]:
    return _opaque_backward(grad.contiguous(), *ctx.saved_tensors), None, None


_opaque.register_autograd(_through, setup_context=_save)
