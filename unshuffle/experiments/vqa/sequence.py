"""What an LSTM makes of the objects: in the order they come in, or in one that is learned (the paper's section 4.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from unshuffle.costs import PairwiseCost
from unshuffle.encoder import encode
from unshuffle.layer import Arrange
from unshuffle.structures import Sequence

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

BOX = 4


class ObjectSequence(nn.Module):
    """A set representation for each glimpse: (B, glimpses, hidden).

    An element is an object's attention logit, its box and its features, projected to few dimensions. The elements are
    arranged, weighted by the sigmoid of their attention, and read by an LSTM, whose last cell state is the result.

    Args:
        features: of an object.
        projected: dimensions that remain of them.
        hidden: of the LSTM.
        arrange: None for the order in which the objects are given.
    """

    def __init__(self, features: int, projected: int, hidden: int, arrange: Arrange | None = None) -> None:
        super().__init__()
        self.project = nn.Linear(features, projected)
        self.arrange = arrange
        self.rnn = nn.LSTM(1 + BOX + projected, hidden, batch_first=True)

    def forward(
        self,
        features: Float[Tensor, "batch n features"],
        boxes: Float[Tensor, "batch n 4"],
        logits: Float[Tensor, "batch glimpses n"],
        mask: Bool[Tensor, "batch n"],
    ) -> Float[Tensor, "batch glimpses hidden"]:
        glimpses = logits.shape[1]
        seen = torch.cat([boxes, self.project(features)], -1).unsqueeze(1).expand(-1, glimpses, -1, -1)
        elements = torch.cat([logits.unsqueeze(-1), seen], -1)  # (B, G, N, 1 + 4 + projected)
        mask = mask.unsqueeze(1).expand(-1, glimpses, -1)
        if self.arrange is not None:
            elements = self.arrange(elements, mask).elements.to(elements.dtype)
        return encode(elements * elements[..., :1].sigmoid(), self.rnn, mask)


def arrangement(projected: int, hidden: int, steps: int, *, neighbours: bool) -> Arrange:
    """PO-U for the elements of an `ObjectSequence`, with or without neighbour relations."""
    structure = Sequence(neighbours=neighbours)
    return Arrange(structure, PairwiseCost(1 + BOX + projected, hidden, structure), steps=steps)
