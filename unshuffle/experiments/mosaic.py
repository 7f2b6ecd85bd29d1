"""Re-assembling image mosaics (the paper's section 4.2): tiles of an image, back in their places on a grid."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from unshuffle import checks
from unshuffle.assembler import Assembler
from unshuffle.assignment import Arrangement, apply, assign, gather
from unshuffle.experiments.models import named
from unshuffle.experiments.puzzles import WATCHED, Puzzles, PuzzleTask, Tiled, assembler
from unshuffle.experiments.puzzles import shuffles as shuffles
from unshuffle.experiments.puzzles import take as take
from unshuffle.experiments.schedules import one_cycle
from unshuffle.experiments.seeds import generator
from unshuffle.restarts import restart
from unshuffle.search import order_cost
from unshuffle.structures import Neighbour

if TYPE_CHECKING:
    from jaxtyping import Float, Int

SIDES = (2, 3, 4, 5)


@dataclass(frozen=True)
class Mosaic(Tiled):
    """The paper's settings, and how our own model is taught and tested."""

    beside: float = 1.0  # weight of telling each tile's neighbours apart, beside the positions
    test_steps: int = 32
    starts: int = 8

    def __post_init__(self) -> None:
        super().__post_init__()
        named(self.model)
        for name in ("test_steps", "starts"):
            checks.integer(name, getattr(self, name), least=1)

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


class MosaicTask(PuzzleTask):
    """See `training.Task`."""

    name = "mosaic"

    config: Mosaic

    def __init__(self, config: Mosaic, device: torch.device, root: Path | None = None) -> None:
        super().__init__(config, device, root)

    def build(self) -> Assembler:
        return assembler(self.config, self.channels, self.tile)

    def loss(self, model: nn.Module, batch: Puzzles) -> Tensor:
        arrangement = model(batch.tiles)
        if not named(self.config.model).neighbours:
            return squared_error(arrangement.soft, batch)
        return in_place(arrangement.soft, batch) + self.config.beside * beside(arrangement, batch)

    def learning_rate(self, progress: float) -> float:
        """The paper's is constant."""
        if not named(self.config.model).neighbours:
            return self.config.lr
        return self.config.lr * one_cycle(progress)

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
        for puzzles in self.tested(pixels, random):
            descent = model(puzzles.tiles).descent
            places = descent.places()
            if arrange.steps:
                descent = replace(descent, steps=steps)
            found = {"": assign(descent.soft())}
            if search:
                found["search_"] = restart(descent, starts=self.config.starts, places=places, random=random)
            for prefix, order in found.items():
                for name, values in scores(puzzles, order).items():
                    sums[prefix + name] = sums.get(prefix + name, 0.0) + values.double().sum().item()
            if search:
                costs, structure = descent.weighted(), descent.structure
                true, best = (order_cost(costs, structure, o, places) for o in (puzzles.order(), found["search_"]))
                missed = (true < best - 1e-5 * best.abs()).sum().item()
                sums["true_costs_less"] = sums.get("true_costs_less", 0.0) + missed
        return {name: total / len(pixels) for name, total in sums.items()} | {"images": len(pixels)}


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
