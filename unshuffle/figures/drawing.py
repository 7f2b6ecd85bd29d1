"""What every picture shares: its frame, tiles, colours centred on zero, and how it is written. Without pyplot."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from unshuffle.experiments.files import write
from unshuffle.experiments.problem import Problem
from unshuffle.structures import Order, Relation

if TYPE_CHECKING:
    from jaxtyping import Float

FORMATS = ("png", "pdf")
DPI = 120
GREY = "0.35"

# On a grid, axis 0 goes down its columns, and axis 1 along its rows: the paper's F₂ and F₁
BEFORE = {0: "above", 1: "left of"}


def canvas(width: float, height: float, title: str, caption: str = "") -> Figure:
    """An empty figure of so many inches, with a line above and below: what it shows, and of which run."""
    figure = Figure(figsize=(width, height), layout="constrained")
    figure.suptitle(title, fontsize="medium")
    figure.supxlabel(caption, fontsize="x-small", color=GREY)
    return figure


def bare(axes: Axes) -> None:
    """No ticks and no box."""
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)


def centred(*values: Tensor) -> dict[str, Any]:
    """Colours for numbers of either sign: blue below zero, red above, white at zero, equally strong on both sides."""
    largest = max(float(tensor.abs().max()) for tensor in values)
    return {"cmap": "RdBu_r", "vmin": -(largest or 1.0), "vmax": largest or 1.0}


def draw_tile(axes: Axes, tile: Float[Tensor, "c h w"], left: float, top: float, size: float = 1.0) -> None:
    """A tile, or a whole image, of numbers from 0 to 1 on an axes whose y grows downwards."""
    pixels = tile.detach().cpu().clamp(0, 1).movedim(0, -1).squeeze(-1).numpy()
    extent = (left, left + size, top + size, top)
    axes.imshow(pixels, cmap="gray", vmin=0, vmax=1, extent=extent, interpolation="nearest")


def fit(axes: Axes, left: float, right: float, bottom: float, top: float) -> None:
    """Show this part, y growing downwards, with square units: each image drawn moved the limits to itself."""
    axes.set(xlim=(left, right), ylim=(bottom, top), aspect="equal")


def relation_name(relation: Relation) -> str:
    """What a low cost says of the first tile of a pair."""
    if isinstance(relation, Order):
        return f"$F_{2 - relation.axis}$: {BEFORE[relation.axis]}"
    return f"directly {BEFORE[relation.axis]}"


def check_path(path: Path) -> str:
    """The format that a file's name asks for, if it can stand there."""
    suffix = path.suffix.lower().removeprefix(".")
    if suffix not in FORMATS:
        raise Problem(f"cannot tell a format from the name {str(path)!r}: a figure is written as .png or .pdf")
    if path.parent.exists() and not path.parent.is_dir():
        raise Problem(f"cannot write {path}: {path.parent} is a file, not a folder")
    return suffix


def legend(figure: Figure, columns: int = 2) -> None:
    """Below the axes, each line once by its label: as captions of the runs they say which is which."""
    lines = {str(line.get_label()): line for axes in figure.axes for line in axes.lines}
    named = {name: line for name, line in lines.items() if not name.startswith("_")}
    figure.legend(named.values(), named, loc="outside lower center", fontsize="x-small", frameon=False, ncols=columns)


def save(figure: Figure, path: Path) -> None:
    """Write it as its name says; half a picture never stands in the place of a whole one."""
    content, suffix = io.BytesIO(), check_path(path)
    # Without the date, the same picture is the same file
    figure.savefig(content, format=suffix, dpi=DPI, metadata={"CreationDate": None} if suffix == "pdf" else None)
    write(path, content.getvalue())
