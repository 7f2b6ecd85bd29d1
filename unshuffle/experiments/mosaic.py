"""Re-assembling image mosaics (the paper's section 4.2): tiles of an image, back in their places on a grid."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from unshuffle import checks, tiles
from unshuffle.assembler import Assembler
from unshuffle.assignment import Arrangement, apply, assign, gather
from unshuffle.experiments import data
from unshuffle.experiments.models import named
from unshuffle.experiments.problem import Problem
from unshuffle.experiments.seeds import generator
from unshuffle.restarts import restart
from unshuffle.search import order_cost
from unshuffle.structures import Grid, Neighbour

if TYPE_CHECKING:
    from jaxtyping import Float, Int, UInt8

SIDES = (2, 3, 4, 5)
WATCHED = 1000  # test images that an epoch's quick metrics look at
CHUNK = 250  # test images at a time


@dataclass(frozen=True)
class Mosaic:
    """The paper's settings (its appendix E.2)."""

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
    # Of our own model only; the paper's models have nothing to search with
    pair_hidden: tuple[int, ...] = (128, 64)  # of the neighbours' network
    beside: float = 1.0  # weight of telling each tile's neighbours apart, beside the positions
    test_steps: int = 32
    starts: int = 8

    def __post_init__(self) -> None:
        named(self.model)
        checks.integer("side", self.side, least=2)
        for name in ("hidden", "channels", "batch_size", "epochs", "test_steps", "starts"):
            checks.integer(name, getattr(self, name), least=1)
        checks.integer("steps", self.steps, least=0)
        checks.positive("lr", self.lr)
        if self.limit is not None:
            checks.integer("limit", self.limit, least=1)

    @property
    def cell(self) -> str:
        """Which cell of the table a run fills, as the name of its files."""
        return f"mosaic-{Path(self.dataset).name}-{self.side}-{self.model}"


OURS = {"steps": 8, "batch_size": 64, "lr": 2e-3, "epochs": 10, "clip": 1.0}


def settings(**chosen: Any) -> Mosaic:
    """The paper's settings for its models, and ours for ours; what is chosen comes before either."""
    if "pair_hidden" in chosen:
        chosen["pair_hidden"] = tuple(chosen["pair_hidden"])
    ours = OURS if named(chosen.get("model", Mosaic.model)).neighbours else {}
    large = {"hidden": 128, "epochs": 1} if chosen.get("dataset") == "tiny-imagenet" and not ours else {}
    return Mosaic(**{**ours, **large, **chosen})


@dataclass(frozen=True)
class Puzzles:
    """A batch of shuffled images. Element i of a set belongs at position `positions[i]`."""

    tiles: Float[Tensor, "batch n c h w"]
    positions: Int[Tensor, "batch n"]

    def order(self) -> Int[Tensor, "batch n"]:
        """The true order: which element stands at each position."""
        return self.positions.argsort(-1)


def assembler(config: Mosaic, channels_in: int, size: int) -> Assembler:
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


class MosaicTask:
    """See `training.Task`."""

    name = "mosaic"

    def __init__(self, config: Mosaic, device: torch.device, root: Path | None = None) -> None:
        self.config, self.device = config, device
        train, test = data.load(config.dataset, root=root)
        self.channels, size = train.pixels.shape[1], tiles.divisible(train.pixels.shape[-1], config.side)
        self.tile = size // config.side
        if self.tile < 2:
            raise Problem(f"side {config.side} leaves tiles of {self.tile} pixel; a tile needs 2 for its pooling")
        self.mean, self.std = train.mean.to(device), train.std.to(device)
        self.train = tiles.rescale(train.pixels[: config.limit], size).to(device)
        self.test = tiles.rescale(test.pixels[: config.limit], size).to(device)
        self.items = len(self.train)
        self.shuffled: tuple[int, Tensor] = (-1, torch.empty(0))

    def build(self) -> Assembler:
        return assembler(self.config, self.channels, self.tile)

    def batch(self, epoch: int, first: int, size: int, part: slice) -> Puzzles:
        if self.shuffled[0] != epoch:
            self.shuffled = epoch, torch.randperm(self.items, generator=generator(self.config.seed, epoch))
        chosen = self.shuffled[1][first : first + size][part]
        positions = shuffles(size, self.config.side**2, generator(self.config.seed, epoch, first))[part]
        return self.puzzles(self.train[chosen.to(self.device)], positions.to(self.device))

    def puzzles(self, pixels: UInt8[Tensor, "batch c h w"], positions: Int[Tensor, "batch n"]) -> Puzzles:
        """Cut, shuffled and normalised: whole batches on the device."""
        shuffled = take(tiles.cut(pixels, self.config.side, self.config.side), positions)
        return Puzzles(tiles.normalised(shuffled, self.mean, self.std), positions)

    def loss(self, model: nn.Module, batch: Puzzles) -> Tensor:
        arrangement = model(batch.tiles)
        if not named(self.config.model).neighbours:
            return squared_error(arrangement.soft, batch)
        return in_place(arrangement.soft, batch) + self.config.beside * beside(arrangement, batch)

    def learning_rate(self, progress: float) -> float:
        """The paper's is constant; ours rises for a fifth of the time, and falls to nothing."""
        if not named(self.config.model).neighbours:
            return self.config.lr
        rising, falling = progress / 0.2, 0.5 + 0.5 * math.cos(math.pi * (progress - 0.2) / 0.8)
        return self.config.lr * (max(rising, 0.02) if progress < 0.2 else max(falling, 0.005))

    def watch(self, model: Assembler) -> dict[str, Any]:
        return self.measure(model, self.test[:WATCHED], self.config.steps, search=False)

    def evaluate(self, model: Assembler) -> dict[str, Any]:
        """On the whole test set; for our model with more steps than in training, and with the local search as well."""
        ours = named(self.config.model).neighbours
        return self.measure(model, self.test, self.config.test_steps if ours else self.config.steps, search=ours)

    def measure(self, model: Assembler, pixels: Tensor, steps: int, *, search: bool) -> dict[str, Any]:
        """Means over images of what `scores` says of the Hungarian order, and of the searched one as `search_…`."""
        arrange, sums = model.arrange, dict[str, float]()
        random = generator("test", self.config.side)
        for chunk in pixels.split(CHUNK):
            puzzles = self.puzzles(chunk, shuffles(len(chunk), self.config.side**2, random).to(self.device))
            descent = model(puzzles.tiles).descent
            if arrange.steps:
                descent = replace(descent, steps=steps)
            found = {"": assign(descent.soft())}
            if search:
                found["search_"] = restart(descent, starts=self.config.starts, random=random)
            for prefix, order in found.items():
                for name, values in scores(puzzles, order).items():
                    sums[prefix + name] = sums.get(prefix + name, 0.0) + values.double().sum().item()
            if search:
                costs, structure = descent.weighted(), descent.structure
                true, best = (order_cost(costs, structure, o) for o in (puzzles.order(), found["search_"]))
                missed = (true < best - 1e-5 * best.abs()).sum().item()
                sums["true_costs_less"] = sums.get("true_costs_less", 0.0) + missed
        return {name: total / len(pixels) for name, total in sums.items()} | {"images": len(pixels)}


def shuffles(count: int, size: int, random: torch.Generator) -> Int[Tensor, "count n"]:
    return torch.rand(count, size, generator=random).argsort(-1)


def take(x: Tensor, index: Int[Tensor, "batch n"]) -> Tensor:
    """x[b, index[b, i]] for tiles of any shape."""
    return x[torch.arange(len(x), device=x.device)[:, None], index]


def squared_error(soft: Float[Tensor, "batch n n"], batch: Puzzles) -> Tensor:
    """The paper's: of the softly arranged tiles to the image."""
    flat = batch.tiles.flatten(2)
    return (apply(soft, flat) - take(flat, batch.order())).square().mean()


def in_place(soft: Float[Tensor, "batch n n"], batch: Puzzles) -> Tensor:
    """Cross-entropy of every tile's position."""
    at_home = soft.gather(-1, batch.positions.unsqueeze(-1)).squeeze(-1)
    return -(at_home + 1e-8).log().mean()


def beside(arrangement: Arrangement, batch: Puzzles) -> Tensor:
    """Cross-entropy of who stands directly after and directly before each tile, from the neighbour costs alone.

    −C_r[i, j] is read as how likely j is next to i, among all j. It teaches the costs without going through the
    descent, which makes the first epochs much quicker.
    """
    structure, order = arrangement.descent.structure, batch.order()
    size = order.shape[-1]
    identity = torch.eye(size, dtype=torch.bool, device=order.device)
    total = torch.zeros((), device=order.device)
    for number, relation in enumerate(structure.relations):
        if isinstance(relation, Neighbour):
            costs = arrangement.descent.centred[:, number]
            placed = take(take(costs, order).mT, order).mT  # [k, k'] of the tiles that belong at k and k'
            likely = -placed.masked_fill(identity, torch.inf)
            pairs = structure.apply_transposed(relation, identity.to(placed.dtype))  # O: 1 for (k, next of k)
            after, before = likely.log_softmax(-1), likely.log_softmax(-2)
            chosen = (after + before).masked_fill(pairs == 0, 0.0)
            total = total - chosen.sum() / (len(order) * pairs.sum())
    return total / 2


def scores(batch: Puzzles, order: Int[Tensor, "batch n"]) -> dict[str, Tensor]:
    """Of each image: the paper's error and accuracy, right to the pixel, and the share of tiles in place."""
    flat, true = batch.tiles.flatten(2), batch.order()
    error = gather(flat, order) - gather(flat, true)
    placed = order == true
    return {
        "mse": error.square().mean((1, 2)),
        "exact": placed.all(-1),
        "pixel_exact": (error == 0).flatten(1).all(-1),
        "tiles": placed.double().mean(-1),
    }
