"""A table of text, for a terminal and as Markdown, and how numbers are written in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rich.table import Table as RichTable

NONE = "–"


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


def percent(share: float | None) -> str:
    """Two digits near the ends, where one would round a miss away."""
    if share is None:
        return NONE
    value = 100 * share
    return f"{value:.1f}" if value in (0, 100) or 0.05 <= value < 99.9 else f"{value:.2f}"


def duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
