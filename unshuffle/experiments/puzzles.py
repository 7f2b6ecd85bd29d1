"""Images as puzzles: cut into tiles that come in a random order. What every task on mosaics is made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from unshuffle import checks, tiles
from unshuffle.assembler import Assembler
from unshuffle.experiments import data
from unshuffle.experiments.models import named
from unshuffle.experiments.problem import Problem
from unshuffle.experiments.seeds import generator
from unshuffle.structures import Grid

if TYPE_CHECKING:
    from jaxtyping import Float, Int, UInt8

WATCHED = 1000  # test images that an epoch's quick metrics look at
CHUNK = 250  # test images at a time


@dataclass(frozen=True)
class Tiled:
    """The paper's settings of a model for mosaics, and of its training (its appendix E.2)."""

    dataset: str = "mnist"
    side: int = 3
    model: str = "po-la"
    steps: int = 4
    hidden: int = 64
    channels: int = 64
    lr: float = 1e-3
    batch_size: int = 32
    epochs: int = 20
    clip: float | None = None
    seed: int = 0
    limit: int | None = None  # images of each split, at the most
    pair_hidden: tuple[int, ...] = (128, 64)  # of the neighbours' network, which only our own model has

    def __post_init__(self) -> None:
        checks.integer("side", self.side, least=2)
        for name in ("hidden", "channels", "batch_size", "epochs"):
            checks.integer(name, getattr(self, name), least=1)
        checks.integer("steps", self.steps, least=0)
        checks.positive("lr", self.lr)
        if self.limit is not None:
            checks.integer("limit", self.limit, least=1)


@dataclass(frozen=True)
class Puzzles:
    """A batch of shuffled images. Element i of a set belongs at position `positions[i]`."""

    tiles: Float[Tensor, "batch n c h w"]
    positions: Int[Tensor, "batch n"]

    def order(self) -> Int[Tensor, "batch n"]:
        """The true order: which element stands at each position."""
        return self.positions.argsort(-1)


def assembler(config: Tiled, channels_in: int, size: int) -> Assembler:
    """The model of a row of the table, for tiles of that size."""
    model = named(config.model)
    return Assembler(
        Grid(config.side, config.side, neighbours=model.neighbours),
        channels_in,
        size,
        channels=config.channels,
        hidden=config.hidden,
        pair_hidden=config.pair_hidden,
        linear=model.linear,
        steps=config.steps if model.descends else 0,
    )


class Drawn:
    """Which of `count` items a batch takes: an epoch is an order of its own, of all of them or of the first `items`.

    An epoch of more items than there are goes through them again, in another order.
    """

    def __init__(self, seed: int, count: int, items: int | None = None) -> None:
        self.seed, self.count, self.items = seed, count, count if items is None else items
        self.kept: tuple[int, Tensor] = (-1, torch.empty(0))

    def __call__(self, epoch: int, first: int, size: int, part: slice) -> Int[Tensor, " part"]:
        if self.kept[0] != epoch:
            random = generator(self.seed, epoch)
            orders = [torch.randperm(self.count, generator=random) for _ in range(-(-self.items // self.count))]
            self.kept = epoch, torch.cat(orders)[: self.items]
        return self.kept[1][first : first + size][part]


class PuzzleTask:
    """The images of a task on mosaics, at a size that the side divides, on the device; and puzzles of them."""

    def __init__(self, config: Tiled, device: torch.device, root: Path | None, items: int | None = None) -> None:
        self.config, self.device = config, device
        train, test = data.load(config.dataset, root=root)
        self.channels, self.size = train.pixels.shape[1], tiles.divisible(train.pixels.shape[-1], config.side)
        self.tile = self.size // config.side
        if self.tile < 2:
            raise Problem(f"side {config.side} leaves tiles of {self.tile} pixel; a tile needs 2 for its pooling")
        self.mean, self.std = train.mean.to(device), train.std.to(device)
        self.train = tiles.rescale(train.pixels[: config.limit], self.size).to(device)
        self.test = tiles.rescale(test.pixels[: config.limit], self.size).to(device)
        self.classes = train.classes
        self.labels, self.test_labels = (images.labels[: config.limit].to(device) for images in (train, test))
        self.drawn = Drawn(config.seed, len(self.train), items)
        self.items = self.drawn.items

    def batch(self, epoch: int, first: int, size: int, part: slice) -> Puzzles:
        chosen = self.drawn(epoch, first, size, part)
        positions = shuffles(size, self.config.side**2, generator(self.config.seed, epoch, first))[part]
        return self.puzzles(self.train[chosen.to(self.device)], positions.to(self.device))

    def puzzles(self, pixels: UInt8[Tensor, "batch c h w"], positions: Int[Tensor, "batch n"]) -> Puzzles:
        """Cut, shuffled and normalised: whole batches on the device."""
        shuffled = take(tiles.cut(pixels, self.config.side, self.config.side), positions)
        return Puzzles(tiles.normalised(shuffled, self.mean, self.std), positions)

    def tested(self, pixels: UInt8[Tensor, "count c h w"], random: torch.Generator) -> Iterator[Puzzles]:
        """Images to test with, some at a time, shuffled as they come."""
        for chunk in pixels.split(CHUNK):
            yield self.puzzles(chunk, shuffles(len(chunk), self.config.side**2, random).to(self.device))


def shuffles(count: int, size: int, random: torch.Generator) -> Int[Tensor, "count n"]:
    return torch.rand(count, size, generator=random).argsort(-1)


def take(x: Tensor, index: Int[Tensor, "batch n"]) -> Tensor:
    """x[b, index[b, i]] for tiles of any shape."""
    return x[torch.arange(len(x), device=x.device)[:, None], index]
