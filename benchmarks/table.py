"""Put the recorded tables into the README and the documentation: `python -m benchmarks.table`.

Two kinds of marker, each followed by what it asks for; a test asserts that they agree with the records:

    <!-- table: FILE -->               the rows of a benchmark's record
    <!-- tables: EXPERIMENT 1 3 -->    these of the tables that `unshuffle table EXPERIMENT` prints, up to <!-- end -->
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import torch

import unshuffle as us
from unshuffle.experiments import tables
from unshuffle.experiments.files import write_json

ROWS = re.compile(r"(<!-- table: (\S+) -->\n)(?:\|[^\n]*\n)*")
TABLES = re.compile(r"(<!-- tables: (\S+)((?: \d+)+) -->\n).*?(<!-- end -->\n)", re.DOTALL)


def pages(root: Path) -> list[Path]:
    """Every page that may hold a marker."""
    return [root / "README.md", *sorted((root / "docs").rglob("*.md"))]


def save(rows: list[dict[str, str]], out: Path | None) -> None:
    """The record of a benchmark, where one is asked for."""
    if out is not None:
        about = {"version": us.__version__, "torch": torch.__version__, "threads": torch.get_num_threads()}
        write_json(out, about | {"rows": rows})


def markdown(record: Path) -> str:
    rows = json.loads(record.read_text())["rows"]
    header = list(rows[0])
    lines = [header, ["---"] * len(header), *([row[name] for name in header] for row in rows)]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def chosen(experiment: str, numbers: list[int], results: Path) -> str:
    found = tables.of(experiment, results)
    return "\n" + "".join(found[number - 1].markdown() + "\n" for number in numbers)


def filled(text: str, root: Path) -> str:
    """The text with every marked table made anew from its records."""
    text = ROWS.sub(lambda match: match[1] + markdown(root / match[2]), text)
    return TABLES.sub(
        lambda match: match[1] + chosen(match[2], [int(n) for n in match[3].split()], root / "results") + match[4], text
    )


def main() -> None:
    for page in pages(Path()):
        page.write_text(filled(page.read_text(), Path()))


if __name__ == "__main__":
    main()
