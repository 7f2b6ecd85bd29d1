"""Sorting numbers (the paper's section 4.1): sets of uniform numbers, and the mean squared error to the sorted list."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from unshuffle import checks
from unshuffle.costs import PairwiseCost
from unshuffle.experiments.models import named
from unshuffle.experiments.seeds import generator
from unshuffle.layer import Arrange, LinearStart
from unshuffle.structures import Sequence

INTERVALS = ((0, 1), (0, 10), (0, 1000), (1, 2), (10, 11), (100, 101), (1000, 1001))
SIZES = (5, 10, 15, 80, 100, 120, 512, 1024)


@dataclass(frozen=True)
class Sorting:
    """The paper's settings (its appendix E.1)."""

    size: int = 10
    model: str = "po-u"
    steps: int = 6
    hidden: int = 16
    lr: float = 0.1
    batch_size: int = 512
    sets: int = 2**18
    epochs: int = 1
    clip: float | None = None
    seed: int = 0
    test_sets: int = 1000  # of each interval and size
    limit: int | None = None  # sets of an epoch and of each test, at the most

    def __post_init__(self) -> None:
        named(self.model)
        for name in ("size", "hidden", "batch_size", "sets", "epochs", "test_sets"):
            checks.integer(name, getattr(self, name), least=1)
        checks.integer("steps", self.steps, least=0)
        checks.positive("lr", self.lr)
        if self.limit is not None:
            checks.integer("limit", self.limit, least=1)

    def limited(self, sets: int) -> int:
        return sets if self.limit is None else min(sets, self.limit)

    @property
    def cell(self) -> str:
        """Which cell of the table a run fills, as the name of its files."""
        return f"sorting-{self.size}-{self.model}"


def settings(**chosen: Any) -> Sorting:
    """The paper's settings, but a batch of large sets no larger than memory likes, and as many sets as it takes.

    512 sets of 120 numbers are 7 million pairs; beyond that the batch shrinks, and with it the number of sets, because
    the pairs of a large set teach as much as many small sets do: by step 50 the loss has all but stopped falling.
    """
    size = checks.integer("size", chosen.get("size", Sorting.size), least=1)
    batch = max(2, min(512, 512 * 120**2 // size**2))
    sets = 2**18 if size <= 15 else batch * (100 if size <= 120 else 50)
    return Sorting(**{"batch_size": batch, "sets": sets, "test_sets": 1000 if size <= 120 else 100} | chosen)


class SortingTask:
    """See `training.Task`."""

    name = "sorting"

    def __init__(self, config: Sorting, device: torch.device, root: Path | None = None) -> None:
        self.config, self.device, self.items = config, device, config.limited(config.sets)

    def build(self) -> Arrange:
        """The layer is the whole model: its elements are the numbers themselves."""
        config, model = self.config, named(self.config.model)
        structure = Sequence(neighbours=model.neighbours)
        layer = Arrange(
            structure,
            PairwiseCost(1, config.hidden, structure),
            start=LinearStart(1, config.size) if model.linear else None,
            steps=config.steps if model.descends else 0,
        )
        if not model.descends:  # nothing depends on the costs
            layer.cost.requires_grad_(False)
            layer.step_size.requires_grad_(False)
        return layer

    def batch(self, epoch: int, first: int, size: int, part: slice) -> Tensor:
        """Sets of uniform numbers on [0, 1], (batch, N, 1)."""
        sets = torch.rand(size, self.config.size, 1, generator=generator(self.config.seed, epoch, first))
        return sets[part].to(self.device)

    def loss(self, model: nn.Module, batch: Tensor) -> Tensor:
        return (model(batch).elements - batch.sort(dim=1).values).square().mean()

    def learning_rate(self, progress: float) -> float:
        return self.config.lr

    def watch(self, model: Arrange) -> dict[str, Any]:
        return {"sorted": perfectly_sorted(model, self.config.size, (0, 1), self.config.limited(100), seed=2)}

    def evaluate(self, model: Arrange) -> dict[str, Any]:
        """The share of sets sorted perfectly: on every interval, and on [0, 1] at sizes it was not trained at."""
        size, sets = self.config.size, self.config.limited(self.config.test_sets)
        others = [other for other in SIZES if other != size and (model.start is None or other < size)]
        other_sets = {str(other): min(sets, max(20, 2**24 // other**2)) for other in others}  # fewer of large sets
        return {
            "sets": sets,
            "sorted": {f"{low}-{high}": perfectly_sorted(model, size, (low, high), sets) for low, high in INTERVALS},
            "other_sets": other_sets,
            "other_sizes": {other: perfectly_sorted(model, int(other), (0, 1), n) for other, n in other_sets.items()},
        }


@torch.no_grad()
def perfectly_sorted(
    model: Arrange, size: int, interval: tuple[float, float], sets: int = 1000, seed: int = 1
) -> float:
    """The share of new sets on an interval whose exact order leaves nothing out of place.

    In float64, as in the paper: single precision has too few numbers on [1000, 1001] for 1024 different ones.
    """
    device = next(model.parameters()).device
    model = copy.deepcopy(model).double()
    low, high = interval
    random, perfect = generator("test", seed, size, low, high), 0
    chunk = max(1, 2**21 // size**2)
    for done in range(0, sets, chunk):
        numbers = torch.rand(min(chunk, sets - done), size, 1, generator=random, dtype=torch.float64).to(device)
        x = low + (high - low) * numbers
        perfect += int((model(x).hard().diff(dim=1) >= 0).flatten(1).all(1).sum())
    return perfect / sets
