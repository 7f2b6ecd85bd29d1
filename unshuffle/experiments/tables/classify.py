"""The tables of implicitly learned permutations, beside the paper's."""

from __future__ import annotations

from collections.abc import Callable

from unshuffle.experiments import paper
from unshuffle.experiments.classify import TITLES
from unshuffle.experiments.records import Record
from unshuffle.experiments.tables.cells import Cells, beside, two_digits
from unshuffle.experiments.tables.table import Table, duration, percent


def classify(found: list[Record]) -> list[Table]:
    cells = Cells(found)

    def table(title: str, shown: Callable[[Record], str]) -> Table:
        return Table(
            title, cells.header, [[name, *cells.row(model, shown)] for model, name in cells.of(TITLES).items()]
        )

    return [
        table("Images classified right, % (paper's in brackets)",
              lambda r: beside(r, r.metrics["accuracy"], paper.CLASSIFY_ACCURACY, percent, 100)),
        table("Mean squared error of the implicit reconstruction (paper's in brackets)",
              lambda r: beside(r, r.metrics["mse"], paper.CLASSIFY_ERROR, two_digits)),
        table("Budget: images seen, time on two cores", lambda r: f"{r.images_seen:,}, {duration(r.seconds)}"),
    ]  # fmt: skip
