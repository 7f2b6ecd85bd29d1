"""Tiles of an image to their places on a grid: a small convolution, and Arrange on what it sees in each tile."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, max_pool2d, pad

from unshuffle.assignment import Arrangement
from unshuffle.costs import PairwiseCost
from unshuffle.layer import Arrange, LinearStart
from unshuffle.structures import Lattice, Neighbour, Order

if TYPE_CHECKING:
    from jaxtyping import Float


class TileEncoder(nn.Module):
    """A 5×5 convolution, 2×2 max pooling and ReLU; flattened. Pooling first is the same, on a quarter of the values.

    The five rows that the kernel covers are laid side by side as channels, for a 1×5 kernel: the same convolution, of
    which grey tiles, too, get the layout with the channels last, and with it a pooling that is five times as fast.
    """

    KERNEL = 5

    def __init__(self, channels_in: int, channels: int, size: int) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(channels_in, channels, self.KERNEL, padding=2)
        nn.init.xavier_uniform_(self.convolution.weight)
        nn.init.zeros_(self.convolution.get_parameter("bias"))
        self.features = channels * (size // 2) ** 2

    def forward(self, x: Float[Tensor, "*batch n c h w"]) -> Float[Tensor, "*batch n features"]:
        tall = pad(x.flatten(0, -4), (0, 0, 2, 2))  # (B·N, C, h + 4, w)
        rows = tall.unfold(-2, self.KERNEL, 1).movedim(-1, -3).flatten(1, 2)  # (B·N, C·5, h, w)
        weight, bias = self.convolution.weight.flatten(1, 2).unsqueeze(2), self.convolution.bias
        convolved = conv2d(rows.contiguous(memory_format=torch.channels_last), weight, bias, padding=(0, 2))
        pooled = max_pool2d(convolved, 2).relu()
        # Channels are last in memory: flattened in that order, nothing is copied
        return pooled.movedim(1, -1).reshape(*x.shape[:-3], self.features)


class OrderAndNeighbourCost(nn.Module):
    """A shallow network for the order relations, a deeper one for the neighbours: what each of them needs."""

    def __init__(self, features: int, hidden: int, pair_hidden: tuple[int, ...], structure: Lattice) -> None:
        super().__init__()
        kinds = [tuple(r for r in structure.relations if isinstance(r, kind)) for kind in (Order, Neighbour)]
        self.order = PairwiseCost(features, hidden, structure, relations=kinds[0])
        self.neighbour = PairwiseCost(features, pair_hidden, structure, relations=kinds[1])

    def forward(self, x: Float[Tensor, "*batch n features"]) -> Float[Tensor, "*batch r n n"]:
        order, neighbour = self.order(x), self.neighbour(x)
        return torch.cat([order, neighbour.to(order.dtype)], -3)


class Assembler(nn.Module):
    """Tiles to their arrangement. With neighbour relations, raw pixels stand beside the tiles' features.

    Args:
        structure: a position for each tile.
        channels_in, size: of a tile, which is square.
        channels: of the convolution.
        hidden: width of the pair network of the order relations.
        pair_hidden: widths of the one of the neighbour relations, where the structure has them.
        linear: start from a linear map of each tile (PO-LA) instead of uniform (PO-U).
        steps: T of the descent. 0 leaves the linear start as it is (LinAssign).
    """

    def __init__(
        self,
        structure: Lattice,
        channels_in: int,
        size: int,
        *,
        channels: int = 64,
        hidden: int = 64,
        pair_hidden: tuple[int, ...] = (128, 64),
        linear: bool = True,
        steps: int = 4,
    ) -> None:
        super().__init__()
        self.encoder = TileEncoder(channels_in, channels, size)
        self.raw = structure.neighbours
        features = self.encoder.features + channels_in * size**2 * self.raw
        cost: nn.Module = PairwiseCost(features, hidden, structure)
        if structure.neighbours:
            cost = OrderAndNeighbourCost(features, hidden, pair_hidden, structure)
        start = LinearStart(features, math.prod(structure.shape)) if linear else None
        self.arrange = Arrange(structure, cost, start=start, steps=steps)
        if steps == 0:  # nothing depends on the costs
            self.arrange.cost.requires_grad_(False)
            self.arrange.step_size.requires_grad_(False)

    def forward(self, x: Float[Tensor, "batch n c h w"]) -> Arrangement:
        return self.arrange(self.features(x))

    def features(self, x: Float[Tensor, "batch n c h w"]) -> Float[Tensor, "batch n features"]:
        features = self.encoder(x)
        if self.raw:
            features = torch.cat([features, x.flatten(2).to(features.dtype)], -1)
        return features

    def neighbour_costs(self, x: Float[Tensor, "batch m c h w"]) -> Float[Tensor, "batch r m m"]:
        """Of the neighbour relations alone: they compare tiles, however many, and know of no positions."""
        if not isinstance(self.arrange.cost, OrderAndNeighbourCost):
            raise TypeError(f"{self.arrange.structure!r} has no neighbour relations")
        return self.arrange.cost.neighbour(self.features(x))
