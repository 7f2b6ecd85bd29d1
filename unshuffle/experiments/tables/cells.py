"""Records by their cell: a row for each model, a column for each dataset and side."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from unshuffle.experiments import paper
from unshuffle.experiments.mosaic import SIDES
from unshuffle.experiments.records import Record
from unshuffle.experiments.tables.table import NONE

KNOWN = ("mnist", "cifar10", "tiny-imagenet")


class Cells:
    """The records of an experiment on mosaics."""

    def __init__(self, found: list[Record]) -> None:
        self.records = {(r.config["model"], _dataset(r), r.config["side"]): r for r in found}
        datasets = sorted({dataset for _, dataset, _ in self.records}, key=_known_first)
        self.columns = [(dataset, side) for dataset in datasets for side in SIDES]
        self.header = ["model", *(f"{dataset} {side}×{side}" for dataset, side in self.columns)]

    def of(self, models: dict[str, str]) -> dict[str, str]:
        """Which of these models, with their titles, have a record."""
        return {name: title for name, title in models.items() if any(model == name for model, _, _ in self.records)}

    def row(self, model: str, shown: Callable[[Record], str]) -> list[str]:
        """What is shown of a model's records."""
        found = [self.records.get((model, *column)) for column in self.columns]
        return [NONE if record is None else shown(record) for record in found]


def beside(record: Record, value: float, rows: paper.Rows, shown: Callable[[float], str], scale: float = 1) -> str:
    """Ours, and in brackets the paper's value of the same cell, which is `scale` times as large."""
    published = rows.get(record.config["model"], {}).get(_dataset(record))
    behind = "" if published is None else f" ({shown(published[SIDES.index(record.config['side'])] / scale)})"
    return shown(value) + behind


def two_digits(value: float) -> str:
    return f"{value:.2f}"


def _dataset(record: Record) -> str:
    return Path(record.config["dataset"]).name


def _known_first(dataset: str) -> tuple[int, str]:
    return (KNOWN.index(dataset) if dataset in KNOWN else len(KNOWN)), dataset
