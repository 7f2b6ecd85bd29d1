"""Low-rank bilinear attention and pooling (Kim et al. 2018, *Bilinear Attention Networks*, sections 2 and 3).

    attention   A_g = softmax( (1 · p_gᵀ ∘ σ(X U)) σ(Y V)ᵀ )      over all pairs of an object and a word
    pooling     f_g = Σ_xy A_g[x, y] (σ(X U_g) ∘ σ(Y V_g))[x, y]

σ is a ReLU. Every linear map is weight-normalised as a whole, with dropout on what goes into it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

if TYPE_CHECKING:
    from jaxtyping import Bool, Float


def linear(inputs: int, outputs: int, *, dropout: float = 0.0, relu: bool = True) -> nn.Sequential:
    """A weight-normalised linear map, one length for the whole matrix, as BAN builds everything of."""
    layers: list[nn.Module] = [nn.Dropout(dropout)] if dropout else []
    layers.append(weight_norm(nn.Linear(inputs, outputs), dim=None))  # type: ignore[arg-type]
    return nn.Sequential(*layers, *([nn.ReLU()] if relu else []))


class BilinearAttention(nn.Module):
    """Logits of every pair of object and word, for each glimpse: (B, glimpses, N, words).

    Args:
        objects, words: features of each.
        hidden: of the joint space, `rank` times as wide: the paper's k = 3.
        dropout: on the inputs, and on the objects in the joint space.
    """

    def __init__(
        self, objects: int, words: int, hidden: int, glimpses: int, rank: int = 3, dropout: tuple[float, float] = (0, 0)
    ) -> None:
        super().__init__()
        width = rank * hidden
        self.objects = linear(objects, width, dropout=dropout[0])
        self.words = linear(words, width, dropout=dropout[0])
        self.dropout = nn.Dropout(dropout[1])
        self.weight = nn.Parameter(torch.randn(glimpses, 1, width))  # p_g
        self.bias = nn.Parameter(torch.randn(glimpses, 1, 1))
        weight_norm(self, dim=None)  # type: ignore[arg-type]

    def forward(
        self, x: Float[Tensor, "batch n objects"], y: Float[Tensor, "batch words_ words"]
    ) -> Float[Tensor, "batch glimpses n words_"]:
        joint = self.dropout(self.objects(x))
        # The words carry p_g, because there are fewer of them than objects
        asking = self.weight * self.words(y).unsqueeze(1)  # (B, G, words, width)
        logits = joint @ asking.flatten(1, 2).mT  # (B, N, G · words)
        return logits.unflatten(-1, asking.shape[1:3]).transpose(1, 2) + self.bias


class BilinearPooling(nn.Module):
    """One vector of a set of objects and a question, under a given attention."""

    def __init__(self, objects: int, words: int, hidden: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.objects = linear(objects, hidden, dropout=dropout)
        self.words = linear(words, hidden, dropout=dropout)

    def forward(
        self,
        x: Float[Tensor, "batch n objects"],
        y: Float[Tensor, "batch words_ words"],
        attention: Float[Tensor, "batch n words_"],
    ) -> Float[Tensor, "batch hidden"]:
        return ((attention.mT @ self.objects(x)) * self.words(y)).sum(1)


def joint_softmax(
    logits: Float[Tensor, "batch glimpses n words"], pairs: Bool[Tensor, "batch 1 n words"]
) -> Float[Tensor, "batch glimpses n words"]:
    """Attention over all pairs of an object and a word that are real; zero where none is."""
    lowest = torch.finfo(logits.dtype).min
    attention = logits.masked_fill(~pairs, lowest).flatten(2).softmax(-1).view_as(logits)
    return attention.masked_fill(~pairs, 0.0)
