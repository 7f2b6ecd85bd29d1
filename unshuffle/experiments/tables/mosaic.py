"""The tables of re-assembled mosaics, beside the paper's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from unshuffle.experiments import paper
from unshuffle.experiments.models import MODELS
from unshuffle.experiments.mosaic import SIDES
from unshuffle.experiments.records import Record
from unshuffle.experiments.tables.table import NONE, Table, duration, percent


def mosaic(found: list[Record]) -> list[Table]:
    by_cell = {(r.config["model"], Path(r.config["dataset"]).name, r.config["side"]): r for r in found}
    datasets = sorted({dataset for _, dataset, _ in by_cell}, key=_known_first)
    models = [name for name in MODELS if any(model == name for model, _, _ in by_cell)]
    header = ["model", *(f"{dataset} {side}×{side}" for dataset in datasets for side in SIDES)]

    def table(
        title: str, cell: Callable[[Record, str, int], str], prefixes: tuple[str, ...] = ("", "search_")
    ) -> Table:
        rows = []
        for model in models:
            for prefix in prefixes if MODELS[model].neighbours else ("",):
                cells = [by_cell.get((model, dataset, side)) for dataset in datasets for side in SIDES]
                shown = [NONE if r is None else cell(r, prefix, SIDES.index(r.config["side"])) for r in cells]
                rows.append([MODELS[model].title + (", with search" if prefix else ""), *shown])
        return Table(title, header, rows)

    def beside(
        rows: paper.Rows, metric: str, shown: Callable[[float], str], scale: float
    ) -> Callable[[Record, str, int], str]:
        def cell(r: Record, prefix: str, side: int) -> str:
            published = rows.get(r.config["model"], {}).get(Path(r.config["dataset"]).name)
            behind = "" if published is None else f" ({shown(published[side] / scale)})"
            return shown(r.metrics[prefix + metric]) + behind

        return cell

    def two_digits(value: float) -> str:
        return f"{value:.2f}"

    unpublished: paper.Rows = {}
    return [
        table("Mean squared error (paper's in brackets)", beside(paper.MOSAIC_ERROR, "mse", two_digits, 1)),
        table("Images with every tile in its place, % (paper's in brackets)",
              beside(paper.MOSAIC_ACCURACY, "exact", percent, 100)),
        table("Images right to the pixel, %", beside(unpublished, "pixel_exact", percent, 100)),
        table("Tiles in their places, %", beside(unpublished, "tiles", percent, 100)),
        table("Images whose true arrangement costs less than the one that the search found, %",
              lambda r, prefix, side: percent(r.metrics.get("true_costs_less")), ("",)),
        table("Budget: epochs, and wall time of one thread on a shared machine",
              lambda r, prefix, side: f"{r.config['epochs']}, {duration(r.seconds)}", ("",)),
    ]  # fmt: skip


def _known_first(dataset: str) -> tuple[int, str]:
    known = list(paper.MOSAIC_ERROR["po-u"])
    return (known.index(dataset) if dataset in known else len(known)), dataset
