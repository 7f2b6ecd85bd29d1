"""The tables of visual question answering: mean and sample standard deviation over seeds, beside the paper's."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from pathlib import Path

from unshuffle.experiments import paper
from unshuffle.experiments.records import Record
from unshuffle.experiments.tables.table import NONE, Table, duration

TITLES = {
    "ban": "BAN",
    "ban-lstm": "BAN + LSTM",
    "ban-po-u": "BAN + PO-U",
    "ban-neighbours": "BAN + neighbours (ours)",
}
COLUMNS = ("overall", "yes/no", "number", "other")


def vqa(found: list[Record]) -> list[Table]:
    """For every data set a table by answer type, and one by the kind of question."""
    names = sorted({_data(record) for record in found})
    return [table for name in names for table in _of([record for record in found if _data(record) == name], name)]


def _of(found: list[Record], name: str) -> list[Table]:
    rows = {model: runs for model in TITLES if (runs := [r for r in found if r.config["model"] == model])}
    kinds = sorted({kind for record in found for kind in record.metrics.get("kinds", {})})
    by_type = [
        [
            TITLES[model],
            *(_cell(run.metrics.get(column) for run in runs) + _published(model, column) for column in COLUMNS),
            str(len(runs)),
            duration(statistics.mean(run.seconds for run in runs)),
        ]
        for model, runs in rows.items()
    ]
    by_kind = [
        [TITLES[model], *(_cell(run.metrics["kinds"].get(kind) for run in runs) for kind in kinds)]
        for model, runs in rows.items()
    ]
    return [
        Table(f"{name}: accuracy, %, mean ± sample standard deviation over seeds (paper's, on VQA v2, in brackets)",
              ["model", *COLUMNS, "seeds", "time of one"], by_type),
        Table(f"{name}: accuracy by the kind of question, %", ["model", *kinds], by_kind),
    ]  # fmt: skip


def _data(record: Record) -> str:
    return Path(record.config["data"]).name


def _cell(shares: Iterable[float | None]) -> str:
    values = [100 * share for share in shares if share is not None]
    if not values:
        return NONE
    return f"{statistics.mean(values):.2f}" + (f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else "")


def _published(model: str, column: str) -> str:
    if model not in paper.VQA:
        return ""
    mean, deviation = paper.VQA[model][COLUMNS.index(column)]
    return f" ({mean:.2f} ± {deviation:.2f})"
