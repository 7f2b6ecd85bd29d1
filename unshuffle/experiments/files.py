"""Files that are either whole or not there: written beside, flushed to the disk, then renamed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from unshuffle.experiments.problem import Problem


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A file beside, to be written, which takes the place of `path` at once; a good file stays if anything goes wrong
    before that.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield beside
        with beside.open("rb+") as file:
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        raise Problem(
            f"cannot write {path}: {error.strerror or error}; what stood there before is untouched"
        ) from error
    finally:
        beside.unlink(missing_ok=True)


def write(path: Path, content: bytes | str) -> None:
    """Put content in the place of a file at once."""
    with replacing(path) as beside:
        beside.write_bytes(content.encode() if isinstance(content, str) else content)


def write_json(path: Path, content: dict[str, Any]) -> None:
    write(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def read_json(path: Path, what: str) -> dict[str, Any]:
    """A JSON object that we wrote; `what` names it in the message if it is not there or not that."""
    try:
        content = json.loads(path.read_text())
    except OSError as error:
        raise Problem(f"{path} is not {what}: {error.strerror or error}") from error
    except ValueError as error:
        raise Problem(f"{path} is not {what}: it is not JSON ({error})") from error
    if not isinstance(content, dict):
        raise Problem(f"{path} is not {what}: it holds no JSON object")
    return content
