"""Records: one small JSON file per finished run, which every table and figure is made from."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from unshuffle.experiments.files import read_json, write_json
from unshuffle.experiments.problem import Problem
from unshuffle.version import __version__


@dataclass(frozen=True)
class Record:
    """What a run was and what came out. `config` holds the settings, dataset, side or size, model and seed included."""

    experiment: str
    config: dict[str, Any]
    metrics: dict[str, Any]
    images_seen: int
    seconds: float
    environment: dict[str, Any]
    version: str = __version__

    def write(self, path: Path) -> None:
        write_json(path, asdict(self))


def read(path: Path) -> Record:
    content = read_json(path, "a record")
    if set(content) != set(Record.__dataclass_fields__):
        raise Problem(f"{path} is not a record: it has the fields {', '.join(sorted(content))}")
    return Record(**content)


def read_all(folder: Path, experiment: str) -> list[Record]:
    """The records of an experiment, in the order of their file names."""
    return [read(path) for path in sorted(folder.glob(f"{experiment}-*.json"))]
