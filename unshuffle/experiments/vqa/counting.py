"""The counting module of Zhang et al. 2018, *Learning to Count Objects in Natural Images for VQA*.

Attention and the overlap of boxes to a count that is not fooled by several proposals of one object. With a the
attention of the n strongest proposals, d the distance 1 − IoU of two boxes, and monotone f_1 … f_8 on [0, 1]:

    A = a aᵀ          Ã = f_1(A) ∘ f_2(d)          edges within an object are removed
    sim_ij = f_3(1 − |a_i − a_j|) Π_k f_3(1 − |X_ik − X_jk|)     X = f_4(A) ∘ f_5(d)
    s_i = 1 / Σ_j sim_ij                           copies of an object share one vote
    count = √(Σ_ij s_i s_j Ã_ij + Σ_i s_i f_1(a_i²))
    confidence = f_8(mean |f_6(a) − ½| + mean |f_7(d) − ½|)

The count is written as a one-hot vector, softly between two whole numbers, times the confidence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

if TYPE_CHECKING:
    from jaxtyping import Bool, Float


class Counter(nn.Module):
    """Count the objects that attention picks, up to `objects`.

    Padding is left out of every sum and mean; a set of fewer than `objects` proposals counts what it has.

    >>> import torch
    >>> Counter(10)(torch.randn(2, 5), torch.rand(2, 5, 4), torch.ones(2, 5, dtype=torch.bool)).shape
    torch.Size([2, 11])
    """

    def __init__(self, objects: int = 10, pieces: int = 16) -> None:
        super().__init__()
        self.objects = objects
        self.f = nn.ModuleList(Monotone(pieces) for _ in range(8))

    def forward(
        self, logits: Float[Tensor, "*batch n"], boxes: Float[Tensor, "*batch n 4"], mask: Bool[Tensor, "*batch n"]
    ) -> Float[Tensor, "*batch objects+1"]:
        f1, f2, f3, f4, f5, f6, f7, f8 = self.f
        lowest = torch.finfo(logits.dtype).min
        logits, strongest = logits.masked_fill(~mask, lowest).topk(min(self.objects, logits.shape[-1]), -1)
        real = mask.gather(-1, strongest)
        boxes = boxes.gather(-2, strongest.unsqueeze(-1).expand(*strongest.shape, 4))
        a = logits.sigmoid().masked_fill(~real, 0.0)  # (*batch, n)
        pairs = real.unsqueeze(-1) & real.unsqueeze(-2)  # (*batch, n, n)
        A, d = a.unsqueeze(-1) * a.unsqueeze(-2), 1 - overlap(boxes)
        X = f4(A) * f5(d)
        # All f vanish at 0, so that nothing of the padding is in A or X; only the similarities could still see it
        rows = f3(1 - (X.unsqueeze(-2) - X.unsqueeze(-3)).abs()).prod(-1)
        similar = (f3(1 - (a.unsqueeze(-1) - a.unsqueeze(-2)).abs()) * rows).masked_fill(~pairs, 0.0)
        share = 1 / similar.sum(-1).masked_fill(~real, 1.0)
        edges = (share.unsqueeze(-1) * share.unsqueeze(-2) * f1(A) * f2(d)).sum((-2, -1))
        loops = (share * f1(a * a)).sum(-1)
        count = (edges + loops + 1e-20).sqrt()
        certain = mean((f6(a) - 0.5).abs(), real, (-1,)) + mean((f7(d) - 0.5).abs(), pairs, (-2, -1))
        return soft_one_hot(count, self.objects) * f8(certain).unsqueeze(-1)

    def extra_repr(self) -> str:
        return f"objects={self.objects}"


class Monotone(nn.Module):
    """f: [0, 1] → [0, 1], piecewise linear and increasing, f(0) = 0, f(1) = 1. Starts as the identity.

    The slope of each piece is proportional to |w|.
    """

    def __init__(self, pieces: int = 16) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(pieces))

    def forward(self, x: Float[Tensor, ...]) -> Float[Tensor, ...]:
        weight = self.weight.abs().to(x.dtype)
        rises = weight / weight.sum()
        return _Interpolate.apply(x.clamp(0, 1), rises)

    def extra_repr(self) -> str:
        return f"pieces={len(self.weight)}"


class _Interpolate(torch.autograd.Function):
    """f(x) = Σ_{k < i} r_k + (n x − i) r_i with i = ⌊n x⌋: the gradient of r gathers by piece, nothing else is kept."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, rises: Tensor) -> Tensor:
        scaled = x * len(rises)
        piece = scaled.long().clamp_max_(len(rises) - 1)
        inside = scaled - piece
        ctx.save_for_backward(piece, inside, rises)
        return (rises.cumsum(0) - rises).take(piece) + inside * rises.take(piece)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        piece, inside, rises = ctx.saved_tensors
        zeros, flat = torch.zeros_like(rises), piece.flatten()
        whole = zeros.scatter_add(0, flat, grad.flatten())  # of the x in each piece, which hold all pieces before
        partly = zeros.scatter_add(0, flat, (grad * inside).flatten())
        return grad * len(rises) * rises.take(piece), whole.flip(0).cumsum(0).flip(0) - whole + partly


def overlap(boxes: Float[Tensor, "*batch n 4"]) -> Float[Tensor, "*batch n n"]:
    """Intersection over union of all pairs of boxes x1, y1, x2, y2."""
    low, high = boxes[..., :2], boxes[..., 2:]
    area = (high - low).clamp_min(0).prod(-1)
    inner = torch.minimum(high.unsqueeze(-2), high.unsqueeze(-3)) - torch.maximum(
        low.unsqueeze(-2), low.unsqueeze(-3)
    )  # (*batch, n, n, 2)
    shared = inner[..., 0].clamp_min(0) * inner[..., 1].clamp_min(0)
    return shared / (area.unsqueeze(-1) + area.unsqueeze(-2) - shared + 1e-12)


def soft_one_hot(count: Float[Tensor, "*batch"], most: int) -> Float[Tensor, "*batch most+1"]:
    """2.25 is [0, 0, .75, .25, 0, …]: a tent around every whole number."""
    numbers = torch.arange(most + 1, device=count.device, dtype=count.dtype)
    return (1 - (count.clamp(0, most).unsqueeze(-1) - numbers).abs()).clamp_min(0)


def mean(values: Tensor, real: Tensor, dims: tuple[int, ...]) -> Tensor:
    return values.masked_fill(~real, 0.0).sum(dims) / real.sum(dims).clamp_min(1)
