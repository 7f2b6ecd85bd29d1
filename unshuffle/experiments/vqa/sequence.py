"""What an LSTM makes of the objects: in the order they come in, or in one that is learned (the paper's section 4.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from unshuffle.costs import PairwiseCost
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
        weighted = elements * elements[..., :1].sigmoid()
        return last_cell(weighted.flatten(0, 1), self.rnn, mask.flatten(0, 1)).unflatten(0, (-1, glimpses))


HOLD = 40.0  # sigmoid(40) is 1 in float32, sigmoid(−40) adds nothing to a cell


def last_cell(
    elements: Float[Tensor, "batch n features"], rnn: nn.LSTM, mask: Bool[Tensor, "batch n"]
) -> Float[Tensor, "batch hidden"]:
    """The last cell state of an LSTM over the real elements, which come first.

    The same as with packed sequences, whose backward pass on a CPU writes as much for every position as for all of
    them. Instead, one more input says which elements are padding, and by a fixed weight it closes the input gate and
    opens the forget gate, so that the cell keeps its state to the end.
    """
    size, gate = len(elements), elements.new_full((rnn.hidden_size,), HOLD)
    hold = torch.cat([-gate, gate, gate.new_zeros(2 * rnn.hidden_size)])  # input, forget, cell, output
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    weight, *others = (getattr(rnn, name) for name in names)
    padding = ~mask.unsqueeze(-1)
    inputs = torch.cat([elements.masked_fill(padding, 0.0), padding.to(elements.dtype)], -1)
    zero = elements.new_zeros(1, size, rnn.hidden_size)
    weights = [torch.cat([weight, hold.unsqueeze(-1)], -1), *others]
    cell = torch.lstm(inputs, (zero, zero), weights, True, 1, 0.0, rnn.training, False, True)[2]
    return cell.squeeze(0)


def arrangement(projected: int, hidden: int, steps: int, *, neighbours: bool, temperature: float = 1.0) -> Arrange:
    """PO-U for the elements of an `ObjectSequence`, with or without neighbour relations."""
    structure = Sequence(neighbours=neighbours)
    cost = PairwiseCost(1 + BOX + projected, hidden, structure)
    return Arrange(structure, cost, steps=steps, temperature=temperature)
