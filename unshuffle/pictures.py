"""Pictures from files, and their pieces: whole in what comes out, small and in colour in what the network sees."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from unshuffle import checks
from unshuffle.extras import needed_for

if TYPE_CHECKING:
    from jaxtyping import Int, UInt8
    from PIL.Image import Image

PIXELS = 64_000_000  # the most that a picture may have
PAPER = (255, 255, 255)  # what the network sees through transparent pixels
PROGRAMS = {"EPS"}  # formats that Pillow hands to another program to run


def open_picture(path: str | os.PathLike[str]) -> Image:
    """A picture from a file in any format that Pillow reads, upright, or a `ValueError` of one line that says why not.

    The size is read from the header and bounded before anything is decoded.
    """
    with needed_for("pictures"):
        from PIL import Image, ImageOps, UnidentifiedImageError
    name = Path(path).name
    Image.init()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path, formats=sorted(set(Image.OPEN) - PROGRAMS)) as image:
                _check_size(name, image)
                frames = getattr(image, "n_frames", 1)
                if frames > 1 and image.format != "MPO":  # a camera's JPEG with a preview behind it
                    raise ValueError(f"{name} holds {frames} frames; save the one to solve as a picture of its own")
                image.load()
                _check_size(name, image)  # what an icon holds may be larger than it says
                return ImageOps.exif_transpose(image)
    except FileNotFoundError:
        raise ValueError(f"there is no file {path}") from None
    except IsADirectoryError:
        raise ValueError(f"{path} is a folder, not a picture") from None
    except PermissionError:
        raise ValueError(f"{path} may not be read") from None
    except UnidentifiedImageError:
        raise ValueError(f"{name} is no picture in a format that can be read") from None
    except (Image.DecompressionBombWarning, Image.DecompressionBombError):
        raise ValueError(_too_large(name)) from None
    except Exception as error:  # a damaged file makes decoders raise whatever they like
        if isinstance(error, ValueError) and name in str(error):
            raise
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{name} is damaged or incomplete, and cannot be read: {reason}") from error


def as_picture(image: object) -> Image:
    """A PIL image, the path of one, or bytes (h, w), (h, w, 1), (h, w, 3) or (h, w, 4), as a PIL image."""
    with needed_for("pictures"):
        from PIL import Image
    if isinstance(image, Image.Image):
        _check_size("the picture", image)
        return image
    if isinstance(image, (str, os.PathLike)):
        return open_picture(image)
    if not isinstance(image, (Tensor, np.ndarray)):
        raise TypeError(f"image must be a PIL image, a path, a tensor or an array, got {checks.describe(image)}")
    pixels = torch.as_tensor(image).cpu()
    if (
        pixels.dtype != torch.uint8
        or pixels.dim() not in (2, 3)
        or (pixels.dim() == 3 and pixels.shape[2] not in (1, 3, 4))
    ):
        raise ValueError(
            f"image must be uint8 (h, w), (h, w, 1), (h, w, 3) or (h, w, 4), got {checks.describe(pixels)}"
        )
    if not pixels.numel():
        raise ValueError(f"image has no pixels: got {checks.describe(pixels)}")
    picture = Image.fromarray(pixels.squeeze(-1).numpy() if pixels.shape[2:] == (1,) else pixels.numpy())
    _check_size("the picture", picture)
    return picture


def trimmed(picture: Image, rows: int, cols: int) -> Image:
    """Without the last pixels that do not fill another row or column of the grid: all pieces are equally large."""
    height, width = picture.height // rows * rows, picture.width // cols * cols
    if not height or not width:
        raise ValueError(
            f"the picture has {picture.width}×{picture.height} pixels, too few for {rows} rows and {cols} columns"
        )
    return picture.copy() if (width, height) == picture.size else picture.crop((0, 0, width, height))


def boxes(picture: Image, rows: int, cols: int) -> list[tuple[int, int, int, int]]:
    """Left, top, right and bottom of every position, row by row, in a picture that the grid divides."""
    width, height = picture.width // cols, picture.height // rows
    corners = [(col * width, row * height) for row in range(rows) for col in range(cols)]
    return [(left, top, left + width, top + height) for left, top in corners]


def rearranged(picture: Image, order: Int[Tensor, " k"], rows: int, cols: int) -> Image:
    """The picture with piece `order[k]` at position k, in its own mode: no pixel is changed."""
    result = picture.copy()
    places = boxes(picture, rows, cols)
    for place, element in zip(places, order.tolist(), strict=True):
        result.paste(picture.crop(places[element]), place)
    return result


def small_pieces(colours: Image, rows: int, cols: int, tile: int) -> UInt8[Tensor, "k 3 tile tile"]:
    """What the network sees of each piece, from `in_colour(picture)`; as large as asked for, and square.

    Each is scaled by itself, so that no pixel knows of the piece beside it.
    """
    from PIL.Image import Resampling

    pieces = [
        # Cropped first: a filter over a box of the whole picture reaches beyond the box
        colours.crop(box).resize((tile, tile), Resampling.BILINEAR)
        for box in boxes(colours, rows, cols)
    ]
    return torch.stack([pixels(piece) for piece in pieces])


def pixels(colours: Image) -> UInt8[Tensor, "3 height width"]:
    return torch.from_numpy(np.array(colours)).movedim(-1, 0)


def in_colour(picture: Image) -> Image:
    """8 bits of red, green and blue, over white where it is transparent."""
    from PIL import Image

    if picture.mode in ("I", "F") or picture.mode.startswith("I;"):
        return _eight_bits(picture).convert("RGB")
    if picture.has_transparency_data:
        seen = Image.new("RGBA", picture.size, PAPER)
        seen.alpha_composite(picture.convert("RGBA"))
        return seen.convert("RGB")
    return picture.convert("RGB")


def _eight_bits(picture: Image) -> Image:
    """Sixteen bits by their high byte; other numbers from their least to their greatest."""
    from PIL import Image

    values = np.asarray(picture).astype(np.float64)
    low, high = 0.0, 65535.0
    if picture.mode == "F" or values.min() < low or values.max() > high:
        finite = values[np.isfinite(values)]
        low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    scaled = np.nan_to_num((values - low) / ((high - low) or 1.0), nan=0.0, posinf=1.0, neginf=0.0)
    return Image.fromarray((255 * scaled).round().astype(np.uint8))


def _check_size(name: str, image: Any) -> None:
    if image.width * image.height > PIXELS:
        raise ValueError(_too_large(name, f", it has {image.width}×{image.height}"))


def _too_large(name: str, size: str = "") -> str:
    return f"{name} is larger than the {PIXELS // 1_000_000} million pixels that a picture may have{size}"
