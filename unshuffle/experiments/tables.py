"""Tables from records, beside the paper's numbers: for a terminal, and as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table as RichTable

from unshuffle.experiments import paper, records
from unshuffle.experiments.models import MODELS
from unshuffle.experiments.problem import Problem
from unshuffle.experiments.records import Record
from unshuffle.experiments.sorting import INTERVALS

NONE = "–"
SIDES = (2, 3, 4, 5)


@dataclass(frozen=True)
class Table:
    title: str
    header: list[str]
    rows: list[list[str]]

    def markdown(self) -> str:
        lines = [self.header, ["---"] * len(self.header), *self.rows]
        return f"**{self.title}**\n\n" + "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"

    def rich(self) -> RichTable:
        table = RichTable(title=self.title, title_justify="left")
        for number, name in enumerate(self.header):
            table.add_column(name, justify="right" if number else "left")
        for row in self.rows:
            table.add_row(*row)
        return table


def of(name: str, results: Path) -> list[Table]:
    """The tables of an experiment."""
    found = records.read_all(results, name)
    if not found:
        raise Problem(f"{results} holds no record of {name}; `unshuffle reproduce {name}` makes them")
    return TABLES[name](found)


def of_metrics(metrics: Mapping[str, Any]) -> RichTable:
    """What one run measured."""
    table = RichTable("metric", "value")
    for name, value in flat(metrics).items():
        table.add_row(name, f"{value:.4g}" if isinstance(value, float) else f"{value}")
    return table


def flat(metrics: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    pairs: dict[str, Any] = {}
    for name, value in metrics.items():
        pairs |= flat(value, f"{prefix}{name} ") if isinstance(value, Mapping) else {prefix + name: value}
    return pairs


def sorting(found: list[Record]) -> list[Table]:
    ordered = sorted(found, key=lambda r: (list(MODELS).index(r.config["model"]), r.config["size"]))
    intervals = [f"{low}-{high}" for low, high in INTERVALS]
    header = ["model", "numbers", *(f"[{low}, {high}]" for low, high in INTERVALS), "sets tested", "sets seen", "time"]
    rows = [
        [
            MODELS[r.config["model"]].title,
            str(r.config["size"]),
            *(percent(r.metrics["sorted"][interval]) for interval in intervals),
            f"{r.metrics['sets']:,}",
            f"{r.images_seen:,}",
            duration(r.seconds),
        ]
        for r in ordered
    ]
    tested = sorted({int(size) for r in ordered for size in r.metrics["other_sizes"]})
    others = [
        [
            MODELS[r.config["model"]].title,
            str(r.config["size"]),
            *(percent(r.metrics["other_sizes"].get(str(size))) for size in tested),
        ]
        for r in ordered
    ]
    return [
        Table("Sets sorted perfectly, % (paper: PO-U 100 everywhere)", header, rows),
        Table("Trained at one size, tested at others on [0, 1]: sets sorted perfectly, %",
              ["model", "trained at", *map(str, tested)], others),
    ]  # fmt: skip


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
        table("Budget: epochs, time on two cores",
              lambda r, prefix, side: f"{r.config['epochs']}, {duration(r.seconds)}", ("",)),
    ]  # fmt: skip


def _known_first(dataset: str) -> tuple[int, str]:
    known = list(paper.MOSAIC_ERROR["po-u"])
    return (known.index(dataset) if dataset in known else len(known)), dataset


def percent(share: float | None) -> str:
    """Two digits near the ends, where one would round a miss away."""
    if share is None:
        return NONE
    value = 100 * share
    return f"{value:.1f}" if value in (0, 100) or 0.05 <= value < 99.9 else f"{value:.2f}"


def duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


TABLES: dict[str, Callable[[list[Record]], list[Table]]] = {"sorting": sorting, "mosaic": mosaic}
