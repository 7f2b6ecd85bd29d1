"""Learning a permutation implicitly (the paper's section 4.3): nobody says where the tiles belong.

The softly arranged tiles are joined to an image, which a frozen classifier reads; its cross-entropy is all that the
permutation learns from. There is no Hungarian method, in training or in evaluation.

    image = join(Pᵀ tiles)        loss = cross_entropy(classifier(image), label)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from unshuffle import checks, tiles
from unshuffle.assembler import Assembler
from unshuffle.assignment import apply, permutation
from unshuffle.experiments import classifier, data
from unshuffle.experiments.models import MODELS
from unshuffle.experiments.pretrained import pretrained
from unshuffle.experiments.problem import Problem
from unshuffle.experiments.puzzles import CHUNK, WATCHED, Puzzles, PuzzleTask, Tiled, assembler, take
from unshuffle.experiments.schedules import schedule
from unshuffle.experiments.seeds import generator
from unshuffle.sinkhorn import full_precision

if TYPE_CHECKING:
    from jaxtyping import Float, Int


class Original(nn.Module):
    """The best that a permutation can be told: every tile in its place."""

    def soft(self, batch: Puzzles) -> Float[Tensor, "batch n n"]:
        return permutation(batch.order())


class Untouched(nn.Module):
    """The tiles as they come, in random order."""

    def soft(self, batch: Puzzles) -> Float[Tensor, "batch n n"]:
        count, size = batch.positions.shape
        return torch.eye(size, device=batch.positions.device).expand(count, size, size)


BOUNDS: dict[str, type[nn.Module]] = {"max": Original, "min": Untouched}  # rows that nothing is trained for
TITLES = {name: name for name in BOUNDS} | {name: model.title for name, model in MODELS.items()}


@dataclass(frozen=True)
class Classify(Tiled):
    """The paper's settings (its appendix E.3), but for the budget: so many images, the same for every model."""

    epochs: int = 3
    images: int = 20_000  # that an epoch draws, from all that there are or that `limit` leaves
    schedule: str = "constant"  # of the learning rate
    test_steps: int | None = None  # of the descent, in evaluation; as many as in training if None
    classifiers: str = "runs"  # folder of the classifiers' runs

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.model not in TITLES:
            raise Problem(f"unknown model {self.model!r}; there are {', '.join(TITLES)}")
        checks.integer("images", self.images, least=1)
        schedule(self.schedule)
        if self.test_steps is not None:
            checks.integer("test_steps", self.test_steps, least=1)

    @property
    def cell(self) -> str:
        """Which cell of the table a run fills, as the name of its files."""
        return f"classify-{Path(self.dataset).name}-{self.side}-{self.model}"


OURS = {"steps": 8, "lr": 1e-3, "clip": 1.0, "schedule": "one-cycle"}


def settings(**chosen: Any) -> Classify:
    """The paper's settings for its models, and ours for ours; what is chosen comes before either."""
    if "pair_hidden" in chosen:
        chosen["pair_hidden"] = tuple(chosen["pair_hidden"])
    return Classify(**{**(OURS if chosen.get("model") == "neighbours" else {}), **chosen})


def needs(config: Classify) -> list[tuple[str, Any]]:
    """The classifier that reads the images of this side."""
    size = tiles.divisible(data.size_of(config.dataset), config.side)
    return [("classifier", classifier.settings(dataset=config.dataset, size=size, limit=config.limit))]


@dataclass(frozen=True)
class Labelled(Puzzles):
    """Puzzles, and what is in the pictures."""

    labels: Int[Tensor, " batch"]


class Reader(nn.Module):
    """Tiles to the logits of their image: an assembler, and the classifier that reads what it assembled.

    The classifier is held, but it is no part of this module: it is neither trained nor saved with it, and stays in its
    own mode and on its own device.
    """

    def __init__(self, assembler: Assembler, config: Classify, classifier: nn.Module) -> None:
        super().__init__()
        self.assembler, self.held = assembler, (classifier,)
        self.side, self.test_steps = config.side, config.test_steps or config.steps

    def soft(self, batch: Puzzles) -> Float[Tensor, "batch n n"]:
        """For evaluation, where a descent may take more steps than in training."""
        arrangement = self.assembler(batch.tiles)
        if self.test_steps == arrangement.descent.steps or not arrangement.descent.steps:
            return arrangement.soft
        return replace(arrangement.descent, steps=self.test_steps).soft()

    def forward(self, x: Float[Tensor, "batch n c h w"]) -> Float[Tensor, "batch classes"]:
        return self.held[0](arranged(self.assembler(x).soft, x, self.side))


def arranged(
    soft: Float[Tensor, "batch n n"], x: Float[Tensor, "batch n c h w"], side: int
) -> Float[Tensor, "batch c height width"]:
    """The image of the softly arranged tiles."""
    with full_precision(soft):
        return tiles.join(apply(soft, x.flatten(2)).view_as(x), side, side)


class ClassifyTask(PuzzleTask):
    """See `training.Task`."""

    name = "classify"
    config: Classify

    def __init__(self, config: Classify, device: torch.device, root: Path | None = None) -> None:
        super().__init__(config, device, root, min(config.images, config.limit or config.images))
        folder = Path(config.classifiers)
        self.classifier = pretrained(folder, config.dataset, self.size, self.channels, self.classes, device)

    def build(self) -> nn.Module:
        if self.config.model in BOUNDS:
            return BOUNDS[self.config.model]()
        return Reader(assembler(self.config, self.channels, self.tile), self.config, self.classifier)

    def batch(self, epoch: int, first: int, size: int, part: slice) -> Labelled:
        puzzles = super().batch(epoch, first, size, part)
        chosen = self.drawn(epoch, first, size, part).to(self.device)
        return Labelled(puzzles.tiles, puzzles.positions, self.labels[chosen])

    def loss(self, model: nn.Module, batch: Labelled) -> Tensor:
        return cross_entropy(model(batch.tiles), batch.labels)

    def learning_rate(self, progress: float) -> float:
        return self.config.lr * schedule(self.config.schedule)(progress)

    def watch(self, model: nn.Module) -> dict[str, Any]:
        return self.measure(model, WATCHED)

    def evaluate(self, model: nn.Module) -> dict[str, Any]:
        return self.measure(model, len(self.test))

    def measure(self, model: Any, count: int) -> dict[str, Any]:
        """Images classified right, and the squared error of the soft reconstruction to the original, in float32."""
        right, error, images = 0, 0.0, self.test[:count]
        labels = self.test_labels[:count].split(CHUNK)
        for puzzles, true in zip(self.tested(images, generator("test", self.config.side)), labels, strict=True):
            image = arranged(model.soft(puzzles), puzzles.tiles, self.config.side)
            original = tiles.join(take(puzzles.tiles, puzzles.order()), self.config.side, self.config.side)
            right += int((self.classifier(image).argmax(-1) == true).sum())
            error += (image - original).square().flatten(1).mean(1).double().sum().item()
        return {"accuracy": right / len(images), "mse": error / len(images), "images": len(images)}
