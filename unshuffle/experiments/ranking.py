"""A ranking from comparisons: the order that contradicts the least weight of them."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass

import torch
from torch import Tensor

from unshuffle.experiments.comparisons import Comparisons
from unshuffle.ordering import order


@dataclass(frozen=True, eq=False)
class Ranking:
    """Items from first to last. `order` (N,) holds their indices in `comparisons.names`."""

    comparisons: Comparisons
    order: Tensor

    def rows(self) -> list[tuple[int, str, float, float, float]]:
        """Place, name, score, weight won, weight lost. The score is the share of its comparisons that an item wins."""
        preferences = self.comparisons.preferences()
        won, lost = preferences.sum(1).tolist(), preferences.sum(0).tolist()
        ranked = enumerate(self.order.tolist(), 1)
        return [
            (place, self.comparisons.names[i], won[i] / ((won[i] + lost[i]) or 1.0), won[i], lost[i])
            for place, i in ranked
        ]

    def contradicted(self) -> tuple[int, float]:
        """How many comparisons, and how much weight, say that somebody lower is better than somebody higher."""
        c = self.comparisons
        place = self.order.argsort()
        against = place[c.winners] > place[c.losers]
        return int(against.sum()), float(c.weights[against].sum())

    def csv(self) -> str:
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["place", "name", "score", "won", "lost"])
        writer.writerows([place, name, f"{score:.4f}", f"{won:g}", f"{lost:g}"]
                         for place, name, score, won, lost in self.rows())  # fmt: skip
        return text.getvalue()


def rank(comparisons: Comparisons, seconds: float = 1.0, seed: int = 0) -> Ranking:
    """The best order that `unshuffle.order` finds in the time."""
    random = torch.Generator().manual_seed(seed)
    return Ranking(comparisons, order(-comparisons.preferences(), seconds=seconds, random=random))
