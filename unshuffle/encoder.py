"""SetEncoder: a set to one vector, by arranging it and reading it in that order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from unshuffle import checks
from unshuffle.layer import Arrange

if TYPE_CHECKING:
    from jaxtyping import Bool, Float


class SetEncoder(nn.Module):
    """Arrange a set, feed it to an LSTM or GRU, and return its last cell state (LSTM) or hidden state (GRU).

    Args:
        arrange: the layer that puts the elements in order.
        rnn: an `nn.LSTM` or `nn.GRU` on the elements' features. Of several layers, the last one's state is taken; of
            two directions, both.

    An empty (fully masked) set is the zero vector.

    >>> import torch, unshuffle as us
    >>> structure = us.Sequence()
    >>> arrange = us.Arrange(structure, us.PairwiseCost(3, 16, structure))
    >>> us.SetEncoder(arrange, torch.nn.LSTM(3, 32, batch_first=True))(torch.rand(8, 10, 3)).shape
    torch.Size([8, 32])
    """

    def __init__(self, arrange: Arrange, rnn: nn.LSTM | nn.GRU) -> None:
        super().__init__()
        if not isinstance(arrange, Arrange):
            raise TypeError(f"arrange must be an Arrange layer, got {checks.describe(arrange)}")
        if not isinstance(rnn, (nn.LSTM, nn.GRU)):
            raise TypeError(f"rnn must be an nn.LSTM or nn.GRU, got {checks.describe(rnn)}")
        self.arrange = arrange
        self.rnn = rnn

    def forward(
        self, x: Float[Tensor, "*batch n features"], mask: Bool[Tensor, "*batch n"] | None = None
    ) -> Float[Tensor, "*batch hidden"]:
        return encode(self.arrange(x, mask).elements.to(x.dtype), self.rnn, mask)


def encode(
    elements: Float[Tensor, "*batch k features"], rnn: nn.LSTM | nn.GRU, mask: Bool[Tensor, "*batch n"] | None = None
) -> Float[Tensor, "*batch hidden"]:
    """The last state of an RNN over arranged elements, of which the first n of each set are real."""
    batch, (size, features) = elements.shape[:-2], elements.shape[-2:]
    flat = elements.reshape(-1, size, features)
    if mask is None:
        _, state = rnn(flat if rnn.batch_first else flat.transpose(0, 1))
    else:
        lengths = mask.expand(*batch, size).reshape(-1, size).sum(-1)
        packed = pack_padded_sequence(flat, lengths.clamp_min(1).cpu(), batch_first=True, enforce_sorted=False)
        _, state = rnn(packed)
    last = state[1] if isinstance(rnn, nn.LSTM) else state  # (layers · directions, batch, hidden)
    directions = 1 + rnn.bidirectional
    vector = torch.cat(last[-directions:].unbind(0), -1)
    if mask is not None:
        vector = vector.masked_fill((lengths == 0).unsqueeze(-1), 0.0)
    return vector.reshape(*batch, vector.shape[-1])
