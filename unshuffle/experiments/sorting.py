"""Sorting numbers (the paper's section 4.1): sets of uniform numbers, and the mean squared error to the sorted list."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from unshuffle.costs import PairwiseCost
from unshuffle.experiments.models import named
from unshuffle.layer import Arrange, LinearStart
from unshuffle.structures import Sequence

INTERVALS = ((0, 1), (0, 10), (0, 1000), (1, 2), (10, 11), (100, 101), (1000, 1001))


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
    seed: int = 0


def build(config: Sorting) -> Arrange:
    """The layer is the whole model: its elements are the numbers themselves."""
    model, structure = named(config.model), Sequence(neighbours=named(config.model).neighbours)
    return Arrange(
        structure,
        PairwiseCost(1, config.hidden, structure),
        start=LinearStart(1, config.size) if model.linear else None,
        steps=config.steps if model.descends else 0,
    )


def batches(config: Sorting, device: torch.device | str = "cpu") -> Iterator[Tensor]:
    """Sets of uniform numbers on [0, 1], (batch, N, 1), made where they are needed."""
    generator = torch.Generator(device).manual_seed(config.seed)
    for seen in range(0, config.sets, config.batch_size):
        count = min(config.batch_size, config.sets - seen)
        yield torch.rand(count, config.size, 1, generator=generator, device=device)


def loss(model: Arrange, x: Tensor) -> Tensor:
    return (model(x).elements - x.sort(dim=1).values).square().mean()


@torch.no_grad()
def perfectly_sorted(
    model: Arrange, size: int, interval: tuple[float, float], sets: int = 1000, seed: int = 1
) -> float:
    """The share of new sets on an interval whose exact order leaves nothing out of place.

    In float64, as in the paper: single precision has too few numbers on [1000, 1001] for 1024 different ones.
    """
    device = next(model.parameters()).device
    dtypes = [parameter.dtype for parameter in model.parameters()]
    model = model.double()
    low, high = interval
    generator, perfect = torch.Generator(device).manual_seed(seed), 0
    chunk = max(1, 2**22 // size**2)
    for done in range(0, sets, chunk):
        shape = (min(chunk, sets - done), size, 1)
        x = low + (high - low) * torch.rand(shape, generator=generator, device=device, dtype=torch.float64)
        perfect += int((model(x).hard().diff(dim=1) >= 0).flatten(1).all(1).sum())
    for parameter, dtype in zip(model.parameters(), dtypes, strict=True):
        parameter.data = parameter.data.to(dtype)
    return perfect / sets
