"""The tables of an experiment, from its records."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from unshuffle.experiments import records
from unshuffle.experiments.problem import Problem
from unshuffle.experiments.records import Record
from unshuffle.experiments.tables.classify import classify
from unshuffle.experiments.tables.mosaic import mosaic
from unshuffle.experiments.tables.sorting import sorting
from unshuffle.experiments.tables.table import Table
from unshuffle.experiments.tables.vqa import vqa

TABLES: dict[str, Callable[[list[Record]], list[Table]]] = {
    "sorting": sorting,
    "mosaic": mosaic,
    "classify": classify,
    "vqa": vqa,
}


def of(name: str, results: Path) -> list[Table]:
    """The tables of an experiment."""
    found = records.read_all(results, name)
    if not found:
        raise Problem(f"{results} holds no record of {name}; `unshuffle reproduce {name}` makes them")
    return TABLES[name](found)
