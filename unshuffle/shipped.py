"""The weights that come with the package: `natural-2x2` to `natural-5x5`, for pictures cut into square grids."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from unshuffle.extras import needed_for

if TYPE_CHECKING:
    from unshuffle.pretrained import Jigsaw

WEIGHTS = Path(__file__).parent / "weights"  # a folder for each, with config.json and model.safetensors


def names() -> list[str]:
    """
    >>> "natural-3x3" in names()
    True
    """
    return sorted(path.parent.name for path in WEIGHTS.glob("*/model.safetensors"))


def load(name: str) -> Jigsaw:
    """A model that comes with the package, ready to use: in evaluation mode, on the CPU, float32.

    >>> import unshuffle as us
    >>> us.load("natural-3x3").grid
    Grid(3, 3, neighbours=True)
    """
    if name not in names():
        raise ValueError(f"there are no weights called {name!r}; there are {', '.join(names())}")
    with needed_for("pretrained models"):
        from unshuffle.pretrained import Jigsaw
    return Jigsaw.from_pretrained(WEIGHTS / name).eval()
