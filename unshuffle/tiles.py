"""Images to tiles and back: whole batches, no loop over images."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn.functional import interpolate

if TYPE_CHECKING:
    from jaxtyping import Float, Num, UInt8


def cut(images: Num[Tensor, "*batch c height width"], rows: int, cols: int) -> Num[Tensor, "*batch k c h w"]:
    """The tiles in row-major order; height and width must be divisible."""
    *batch, channels, height, width = images.shape
    tiles = images.reshape(*batch, channels, rows, height // rows, cols, width // cols)
    return tiles.movedim((-4, -2), (-5, -4)).reshape(*batch, rows * cols, channels, height // rows, width // cols)


def join(tiles: Num[Tensor, "*batch k c h w"], rows: int, cols: int) -> Num[Tensor, "*batch c height width"]:
    """What `cut` took apart."""
    *batch, _, channels, height, width = tiles.shape
    grid = tiles.reshape(*batch, rows, cols, channels, height, width)
    return grid.movedim((-5, -4), (-4, -2)).reshape(*batch, channels, rows * height, cols * width)


def divisible(size: int, side: int) -> int:
    """The next size, from this one on, that `side` divides."""
    return -(-size // side) * side


def rescale(pixels: UInt8[Tensor, "count c h w"], size: int) -> UInt8[Tensor, "count c size size"]:
    """Bilinear, back to bytes; in chunks, because a whole dataset as floats is four times its size."""
    if pixels.shape[-2:] == (size, size):
        return pixels
    result = pixels.new_empty(*pixels.shape[:2], size, size)
    for source, target in zip(pixels.split(4096), result.split(4096), strict=True):
        resized = interpolate(source.float(), (size, size), mode="bilinear", antialias=True)
        target.copy_(resized.round_().clamp_(0, 255).to(torch.uint8))
    return result


def normalised(pixels: UInt8[Tensor, "*batch c h w"], mean: Tensor, std: Tensor) -> Float[Tensor, "*batch c h w"]:
    """Bytes to numbers of mean 0 and standard deviation 1 over the dataset."""
    scale = (1 / (255 * std))[:, None, None]
    return pixels.float().mul_(scale).sub_((mean / std)[:, None, None])
