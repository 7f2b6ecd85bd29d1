"""The table of sorted numbers."""

from __future__ import annotations

from unshuffle.experiments.models import MODELS
from unshuffle.experiments.records import Record
from unshuffle.experiments.sorting import INTERVALS
from unshuffle.experiments.tables.table import Table, duration, percent


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
