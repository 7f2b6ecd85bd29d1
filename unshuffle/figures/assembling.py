"""A picture coming together, as an animation: the pieces as softly arranged after every step, then the result."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from PIL import Image
from torch import Tensor

from unshuffle import tiles
from unshuffle.assignment import apply
from unshuffle.experiments.files import write
from unshuffle.pictures import in_colour, pixels
from unshuffle.solver import Solution

if TYPE_CHECKING:
    from jaxtyping import UInt8

LONGEST = 480  # pixels of the longer side
STEP, FIRST, LAST = 120, 800, 2500  # milliseconds that a frame stays


def soft_pictures(solution: Solution, longest: int = LONGEST) -> UInt8[Tensor, "steps+1 3 height width"]:
    """Σ_i P[i, k] · piece i at each position k, after every step; scaled down to that length of the longer side."""
    rows, cols = solution.rows, solution.cols
    scale = min(1.0, longest / max(solution.given.size))
    width, height = (
        max(1, round(side * scale / n)) * n for n, side in zip((cols, rows), solution.given.size, strict=True)
    )
    shown = in_colour(solution.given).resize((width, height))
    pieces = tiles.cut(pixels(shown), rows, cols)  # (K, 3, h, w)
    mixed = apply(solution.trajectory, pieces.flatten(1).float())  # (steps + 1, K, 3·h·w)
    return tiles.join(mixed.unflatten(-1, pieces.shape[1:]), rows, cols).round().clamp(0, 255).to(torch.uint8)


def save_steps(solution: Solution, path: Path) -> None:
    """A GIF: as it was given, every step of the first descent, and the solution."""
    steps = soft_pictures(solution)
    size = (steps.shape[-1], steps.shape[-2])
    first, last = (in_colour(picture).resize(size) for picture in (solution.given, solution.picture))
    frames = [first, *(Image.fromarray(step.movedim(0, -1).contiguous().numpy()) for step in steps), last]
    stay = [FIRST, *[STEP] * len(steps), LAST]
    file = BytesIO()
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:], duration=stay, loop=0)
    write(path, file.getvalue())
