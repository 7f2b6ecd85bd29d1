"""The tables of re-assembled mosaics, beside the paper's."""

from __future__ import annotations

from collections.abc import Callable

from unshuffle.experiments import paper
from unshuffle.experiments.models import MODELS
from unshuffle.experiments.records import Record
from unshuffle.experiments.tables.cells import Cells, beside, two_digits
from unshuffle.experiments.tables.table import Table, duration, percent

TITLES = {name: model.title for name, model in MODELS.items()}


def mosaic(found: list[Record]) -> list[Table]:
    cells = Cells(found)

    def plain(title: str, shown: Callable[[Record], str]) -> Table:
        return Table(
            title, cells.header, [[name, *cells.row(model, shown)] for model, name in cells.of(TITLES).items()]
        )

    def searched(title: str, metric: str, rows: paper.Rows, shown: Callable[[float], str], scale: float) -> Table:
        """With a second row for what the search made of a model's orders."""

        def row(model: str, prefix: str) -> list[str]:
            return cells.row(model, lambda r: beside(r, r.metrics[prefix + metric], rows, shown, scale))

        lines = []
        for model, name in cells.of(TITLES).items():
            lines.append([name, *row(model, "")])
            if MODELS[model].neighbours:
                lines.append([f"{name}, with search", *row(model, "search_")])
        return Table(title, cells.header, lines)

    return [
        searched("Mean squared error (paper's in brackets)", "mse", paper.MOSAIC_ERROR, two_digits, 1),
        searched("Images with every tile in its place, % (paper's in brackets)", "exact",
                 paper.MOSAIC_ACCURACY, percent, 100),
        searched("Images right to the pixel, %", "pixel_exact", {}, percent, 100),
        searched("Tiles in their places, %", "tiles", {}, percent, 100),
        plain("Images whose true arrangement costs less than the one that the search found, %",
              lambda r: percent(r.metrics.get("true_costs_less"))),
        plain("Budget: epochs, wall time", lambda r: f"{r.config['epochs']}, {duration(r.seconds)}"),
    ]  # fmt: skip
