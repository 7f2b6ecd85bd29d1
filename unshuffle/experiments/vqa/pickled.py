"""Old indices of images are pickled. A pickle can run any code, so that ours may build nothing but plain containers."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any, NoReturn

from unshuffle.experiments.problem import Problem


class Plain(pickle.Unpickler):
    """Dictionaries, lists, strings and numbers; everything else has a name, which is refused."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")

    def persistent_load(self, pid: Any) -> NoReturn:
        raise pickle.UnpicklingError("it refers to something outside itself")


def read_index(path: Path) -> dict[int, int]:
    """The index of images that BAN's converter pickled: numbers of images, and their rows."""
    try:
        with path.open("rb") as file:
            content = Plain(file).load()
    except OSError as error:
        raise Problem(f"{path} cannot be read: {error.strerror or error}") from error
    except Exception as error:  # whatever a broken pickle makes the unpickler raise
        raise Problem(f"{path} is not a pickle of plain containers: {error}") from error
    plain = isinstance(content, dict) and all(type(k) is int and type(v) is int for k, v in content.items())
    if not plain or not content:
        raise Problem(f"{path} is not an index of images: it must hold pairs of an image's number and its row")
    return content
