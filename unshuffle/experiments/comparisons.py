"""Comparisons from a CSV file: a square matrix of preferences with names, or rows of `winner,loser[,count]`.

Which of the two a file holds is read from its content. Where both readings fit, or neither, the message says what would
settle it; it names the file and the line.
"""

from __future__ import annotations

import csv
import io
import unicodedata
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from unshuffle.experiments.problem import Problem

MOST_BYTES, MOST_ROWS, MOST_ITEMS = 2**25, 1_000_000, 2000
LARGEST = 1e100  # sums of such numbers are finite; NaN is not below it either


@dataclass(frozen=True, eq=False)
class Comparisons:
    """Who was preferred to whom, and how strongly: winners, losers and weights (M,), items by their index in names."""

    names: list[str]
    winners: Tensor
    losers: Tensor
    weights: Tensor

    def preferences(self) -> Tensor:
        """W[i, j], the weight of i before j, (N, N)."""
        matrix = self.weights.new_zeros(len(self.names), len(self.names))
        return matrix.index_put((self.winners, self.losers), self.weights, accumulate=True)


class Row(NamedTuple):
    line: int
    cells: list[str]


def read_comparisons(path: Path) -> Comparisons:
    """What a file compares, or a Problem that names the line."""
    rows = _rows(path)
    if not rows:
        raise Problem(f"{path} is empty")
    first = rows[0].cells
    if [cell.lower() for cell in first[:2]] == ["winner", "loser"] and len(first) <= 3:
        return _list(path, rows[1:], len(first))
    if not first[0] and first[1:] == [row.cells[0] for row in rows[1:]]:
        return _matrix(path, rows)
    found: list[Comparisons] = []
    problems: list[Problem] = []
    for reading in (_list, _matrix):
        try:
            found.append(reading(path, rows))
        except Problem as problem:
            problems.append(problem)
    if len(found) == 2:
        raise Problem(
            f"{path} can be read as {len(rows)} comparisons and as a matrix: begin comparisons with the line "
            "winner,loser or winner,loser,count; give a matrix the same names along its top and down its left side, "
            "and an empty corner"
        )
    if not found:
        usual = Counter(len(row.cells) for row in rows).most_common(1)[0][0]
        raise problems[0] if usual <= 3 else problems[1]
    return found[0]


def _rows(path: Path) -> list[Row]:
    """The rows that are not blank. Commas, semicolons or tabs: whichever the first of them has most of."""
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise Problem(f"cannot read {path}: {error.strerror or error}") from error
    if len(content) > MOST_BYTES:
        raise Problem(f"{path} is larger than {MOST_BYTES // 2**20} MiB, too large for a ranking")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise Problem(f"{path}, line {line}: this is not text in UTF-8; save the table as CSV in UTF-8") from error
    beginning = next((line for line in text.splitlines() if line.strip()), "")
    delimiter = max(",;\t", key=beginning.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True, strict=True)
    rows = []
    try:
        for fields in reader:
            cells = [" ".join(field.split()) for field in fields]
            if any(unicodedata.category(c) == "Cc" for cell in cells for c in cell if not c.isprintable()):
                raise Problem(f"{path}, line {reader.line_num}: a control character; this is not a text file")
            if any(cells):
                rows.append(Row(reader.line_num, cells))
            if len(rows) > MOST_ROWS:
                raise Problem(f"{path} has more than {MOST_ROWS:,} rows, too many for a ranking")
    except csv.Error as error:
        raise Problem(f"{path}, line {reader.line_num}: this is not CSV ({error})") from error
    return rows


def _list(path: Path, rows: list[Row], fields: int | None = None) -> Comparisons:
    """Rows of winner, loser and perhaps how often."""
    fields = len(rows[0].cells) if fields is None and rows else fields
    if not rows or fields not in (2, 3):
        raise Problem(f"{path} holds no comparison: rows of winner,loser or winner,loser,count are expected")
    index: dict[str, int] = {}
    pairs, weights = [], []
    for line, cells in rows:
        if len(cells) != fields:
            raise Problem(f"{path}, line {line}: {len(cells)} fields, where the first line has {fields}")
        winner, loser = cells[:2]
        if not winner or not loser:
            raise Problem(f"{path}, line {line}: the {'loser' if winner else 'winner'} has no name")
        if winner == loser:
            raise Problem(f"{path}, line {line}: {winner!r} is compared with itself")
        weight = _number(path, line, cells[2]) if fields == 3 else 1.0
        if not weight > 0:
            raise Problem(f"{path}, line {line}: a count must be above 0, got {cells[2]}")
        pairs.append([index.setdefault(name, len(index)) for name in (winner, loser)])
        weights.append(weight)
    _check_count(path, len(index))
    winners, losers = torch.tensor(pairs).unbind(-1)
    return Comparisons(list(index), winners, losers, torch.tensor(weights, dtype=torch.float64))


def _matrix(path: Path, rows: list[Row]) -> Comparisons:
    """A square of numbers, with names along its top, down its left side, on both or on neither."""
    names, body = _names(path, rows)
    _check_count(path, len(names))
    values = torch.tensor(
        [[0.0 if i == j else _number(path, line, cell or "0") for j, cell in enumerate(cells)]
         for i, (line, cells) in enumerate(body)],
        dtype=torch.float64,
    )  # fmt: skip
    if torch.equal(values, -values.mT):
        values = values.clamp_min(0)  # margins: each is written twice
    if (values < 0).any():
        i, j = (values < 0).nonzero()[0].tolist()
        raise Problem(f"{path}, line {body[i].line}: a preference below 0, {values[i, j]:g} of {names[i]!r} before "
                      f"{names[j]!r}; write it the other way round, above 0")  # fmt: skip
    winners, losers = values.nonzero().unbind(-1)
    if not len(winners):
        raise Problem(f"{path} prefers nothing: every number off the diagonal is 0")
    return Comparisons(names, winners, losers, values[winners, losers])


def _names(path: Path, rows: list[Row]) -> tuple[list[str], list[Row]]:
    """The items of a matrix, and its rows without names."""
    count, width = len(rows), len(rows[-1].cells)
    for line, cells in rows[1:]:
        if len(cells) != len(rows[1].cells):
            raise Problem(f"{path}, line {line}: {len(cells)} fields, where line {rows[1].line} has "
                          f"{len(rows[1].cells)}")  # fmt: skip
    named = any(not _is_number(row.cells[0]) for row in rows[1:])
    headed = any(not _is_number(cell) for cell in rows[0].cells[1:])
    crossed = count == width and (named or headed or rows[0].cells[1:] == [row.cells[0] for row in rows[1:]])
    top, left = crossed or count == width + 1, crossed or width == count + 1
    size = count - top
    # The first row's second cell lies on the diagonal if it is no header, and may hold anything
    half = not top and any(not _is_number(cell) for cell in rows[0].cells[2:])
    if half or width - left != size or len(rows[0].cells) not in ({width, size} if top else {width}):
        raise Problem(
            f"{path}, line {rows[0].line if width == count else rows[-1].line}: a matrix must be square with as many "
            f"rows as columns; its {count} rows have {len(rows[0].cells)} fields in the first and {width} in the last"
        )
    body = [Row(line, cells[left:]) for line, cells in rows[top:]]
    above, beside = rows[0].cells[-size:], [row.cells[0] for row in rows[top:]]
    names = beside if left else above if top else [str(k + 1) for k in range(size)]
    lines = [row.line if left else rows[0].line for row in rows[top:]]
    seen: set[str] = set()
    for k, (line, name) in enumerate(zip(lines, names, strict=True)):
        if crossed and name != above[k]:
            raise Problem(f"{path}, line {line}: the row of {name!r} stands where the columns have {above[k]!r}; rows "
                          "and columns name the same items in the same order")  # fmt: skip
        if not name or name in seen:
            raise Problem(f"{path}, line {line}: " + (f"{name!r} is there twice" if name else "an item has no name"))
        seen.add(name)
    return names, body


def _check_count(path: Path, items: int) -> None:
    if not 2 <= items <= MOST_ITEMS:
        raise Problem(f"{path} has {items:,} items; a ranking takes 2 to {MOST_ITEMS:,}")


def _is_number(cell: str) -> bool:
    try:
        return abs(float(cell or "0")) < LARGEST
    except ValueError:
        return False


def _number(path: Path, line: int, cell: str) -> float:
    if not _is_number(cell) or not cell:
        raise Problem(f"{path}, line {line}: {cell!r} is not a number")
    return float(cell)
