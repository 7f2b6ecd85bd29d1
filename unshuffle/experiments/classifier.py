"""Pre-training the classifier of the implicit experiment: ResNet-18 on whole images, at the size that a side needs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from unshuffle import checks, tiles
from unshuffle.experiments import data
from unshuffle.experiments.puzzles import CHUNK, WATCHED, Drawn
from unshuffle.experiments.resnet import ResNet18
from unshuffle.experiments.schedules import one_cycle
from unshuffle.experiments.seeds import generator

if TYPE_CHECKING:
    from jaxtyping import Float, Int, UInt8

SMALL = 64  # from so many pixels on, the first convolution is ResNet-18's own, 7×7 with stride 2


@dataclass(frozen=True)
class Classifier:
    """Which images the classifier learns, and how. Nobody's settings but ours: the paper says 20 epochs, no more."""

    dataset: str = "mnist"
    size: int = 28  # pixels a side, after rescaling
    lr: float = 2e-3
    batch_size: int = 128
    epochs: int = 2
    clip: float | None = None
    seed: int = 0
    limit: int | None = None  # images of each split, at the most
    shift: int = 1  # pixels, at the most, that an image is moved in training
    mirror: bool = False  # every other image in training

    def __post_init__(self) -> None:
        checks.integer("size", self.size, least=8)
        for name in ("batch_size", "epochs"):
            checks.integer(name, getattr(self, name), least=1)
        checks.integer("shift", self.shift, least=0)
        checks.positive("lr", self.lr)
        if self.limit is not None:
            checks.integer("limit", self.limit, least=1)

    @property
    def model(self) -> str:
        return "resnet-18"

    @property
    def cell(self) -> str:
        return f"classifier-{Path(self.dataset).name}-{self.size}"


PHOTOGRAPHS = {"shift": 4, "mirror": True, "epochs": 6}


def settings(**chosen: Any) -> Classifier:
    """At the dataset's own size unless another is chosen; photographs, unlike digits, may be mirrored."""
    dataset = chosen.get("dataset", Classifier.dataset)
    return Classifier(**{"size": data.size_of(dataset), **({} if dataset == "mnist" else PHOTOGRAPHS), **chosen})


@dataclass(frozen=True)
class Labelled:
    images: Float[Tensor, "batch c h w"]
    labels: Int[Tensor, " batch"]


def network(classes: int, channels: int, size: int) -> ResNet18:
    """In the layout that convolutions are fastest in."""
    made: Any = ResNet18(classes, channels=channels, small_images=size < SMALL)
    return made.to(memory_format=torch.channels_last)


class ClassifierTask:
    """See `training.Task`."""

    name = "classifier"

    def __init__(self, config: Classifier, device: torch.device, root: Path | None = None) -> None:
        self.config, self.device = config, device
        train, test = data.load(config.dataset, root=root)
        self.channels, self.classes = train.pixels.shape[1], train.classes
        self.mean, self.std = train.mean.to(device), train.std.to(device)
        self.train, self.test = (tiles.rescale(s.pixels[: config.limit], config.size).to(device) for s in (train, test))
        self.labels, self.test_labels = (s.labels[: config.limit].to(device) for s in (train, test))
        self.items = len(self.train)
        self.drawn = Drawn(config.seed, self.items)

    def build(self) -> ResNet18:
        return network(self.classes, self.channels, self.config.size)

    def batch(self, epoch: int, first: int, size: int, part: slice) -> Labelled:
        chosen = self.drawn(epoch, first, size, part).to(self.device)
        random = generator(self.config.seed, epoch, first)
        reach = self.config.shift
        shifts = torch.randint(-reach, reach + 1, (2, size), generator=random)[:, part]
        mirrored = (torch.rand(size, generator=random)[part] < 0.5) & self.config.mirror
        pixels = moved(self.train[chosen], shifts.to(self.device), mirrored.to(self.device))
        return Labelled(tiles.normalised(pixels, self.mean, self.std), self.labels[chosen])

    def loss(self, model: nn.Module, batch: Labelled) -> Tensor:
        return cross_entropy(model(batch.images), batch.labels)

    def learning_rate(self, progress: float) -> float:
        return self.config.lr * one_cycle(progress)

    def watch(self, model: nn.Module) -> dict[str, Any]:
        return self.measure(model, WATCHED)

    def evaluate(self, model: nn.Module) -> dict[str, Any]:
        return self.measure(model, len(self.test))

    def measure(self, model: nn.Module, count: int) -> dict[str, Any]:
        right, images = 0, self.test[:count]
        for pixels, labels in zip(images.split(CHUNK), self.test_labels[:count].split(CHUNK), strict=True):
            right += int((model(tiles.normalised(pixels, self.mean, self.std)).argmax(-1) == labels).sum())
        return {"accuracy": right / len(images), "images": len(images)}


def moved(
    pixels: UInt8[Tensor, "batch c h w"], shifts: Int[Tensor, "2 batch"], mirrored: Tensor
) -> UInt8[Tensor, "batch c h w"]:
    """Every image moved down and to the right by its shifts, and mirrored or not. The pixels at its edge are repeated.

    One gather for the whole batch, out of which the images come with their channels last.
    """
    batch, _, height, width = pixels.shape
    rows, cols = (torch.arange(extent, device=pixels.device) for extent in (height, width))
    from_rows = (rows - shifts[0][:, None]).clamp(0, height - 1)
    from_cols = (cols - shifts[1][:, None]).clamp(0, width - 1)
    from_cols = torch.where(mirrored[:, None], width - 1 - from_cols, from_cols)
    image = torch.arange(batch, device=pixels.device)[:, None, None]
    return pixels[image, :, from_rows[:, :, None], from_cols[:, None, :]].movedim(-1, 1)  # from (B, h, w, C)
