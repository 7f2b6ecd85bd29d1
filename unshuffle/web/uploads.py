"""Pictures that a visitor sends: looked at before anything is decoded, and turned into plain pixels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PIL import Image

from unshuffle.experiments.problem import Problem
from unshuffle.pictures import in_colour, open_picture

if TYPE_CHECKING:
    from os import PathLike

BYTES = 20 * 2**20
PIXELS = 40_000_000
SIDE = 1024  # more than this is scaled down: the page shows no more
# Not everything that Pillow reads: some of its formats are read by other programs, or by code that few have looked at
FORMATS = {"JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "AVIF", "PPM"}
TOO_LARGE = f"The page takes pictures of up to {PIXELS // 10**6} million pixels: scale this one down."


def uploaded(path: str | PathLike[str]) -> Image.Image:
    """The picture in a file, RGB, no side above `SIDE`; or a `Problem` that says in one line why there is none."""
    _look(path)
    try:
        picture = in_colour(open_picture(path))
    except ValueError as error:
        raise Problem(str(error)) from error
    picture.thumbnail((SIDE, SIDE))
    return picture


def _look(path: str | PathLike[str]) -> None:
    """Its format and its size, as its header says."""
    Image.init()
    try:
        with Image.open(path, formats=sorted(FORMATS & set(Image.OPEN))) as image:
            width, height = image.size
    except Image.DecompressionBombError as error:
        raise Problem(TOO_LARGE) from error
    except Exception as error:  # a hostile header makes the readers raise whatever they like
        known = ", ".join(sorted(FORMATS))
        raise Problem(f"This is no picture that can be read here. Send one of these: {known}.") from error
    if width * height > PIXELS:
        raise Problem(f"{TOO_LARGE} It has {width:,} × {height:,}.")
