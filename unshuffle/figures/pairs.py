"""How a comparison of two tiles changes with each of their pixels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from unshuffle.assembler import Assembler

if TYPE_CHECKING:
    from jaxtyping import Float

CHUNK = 512  # pairs at a time


def compare(model: Assembler, pairs: Float[Tensor, "count 2 c h w"]) -> Float[Tensor, "count r"]:
    """C_r(t₁, t₂): the cost of the first tile standing in each relation to the second, as it is before it is scaled."""
    return model.arrange.cost(model.features(pairs))[..., 0, 1]


def pair_gradients(model: Assembler, pairs: Float[Tensor, "count 2 c h w"]) -> Float[Tensor, "r count 2 c h w"]:
    """∂C_r(t₁, t₂)/∂t of both tiles of each pair.

    Of an order cost, which is antisymmetric, the gradient of F(t₂, t₁) with respect to t₂ is the second of these times
    −1.
    """
    chunks = []
    for chunk in pairs.detach().split(CHUNK):
        chunk.requires_grad_()
        sums = compare(model, chunk).sum(0).unbind()
        chunks.append(torch.stack([torch.autograd.grad(one, chunk, retain_graph=True)[0] for one in sums]))
    return torch.cat(chunks, 1)
