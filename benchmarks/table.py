"""Put the recorded tables into the README: `python -m benchmarks.table`.

A marker `<!-- table: FILE -->` in the README is followed by the table of that record; a test asserts that they agree.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

MARKER = re.compile(r"(<!-- table: (\S+) -->\n)(?:\|[^\n]*\n)*")


def markdown(record: Path) -> str:
    rows = json.loads(record.read_text())["rows"]
    header = list(rows[0])
    lines = [header, ["---"] * len(header), *([row[name] for name in header] for row in rows)]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def filled(text: str, root: Path) -> str:
    """The text with every marked table made anew from its record."""
    return MARKER.sub(lambda match: match[1] + markdown(root / match[2]), text)


def main() -> None:
    readme = Path("README.md")
    readme.write_text(filled(readme.read_text(), Path()))


if __name__ == "__main__":
    main()
