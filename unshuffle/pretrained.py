"""A trained model with all that it takes to use it: imported only by those who do, because it needs huggingface_hub."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING, Any

import safetensors  # noqa: F401, weights are read and written with it: better missed here than when it is too late
import torch
from huggingface_hub import PyTorchModelHubMixin
from torch import Tensor, nn

from unshuffle import checks
from unshuffle.assembler import Assembler
from unshuffle.assignment import Arrangement
from unshuffle.structures import Grid
from unshuffle.tiles import normalised

if TYPE_CHECKING:
    from jaxtyping import Float, UInt8


class Jigsaw(
    nn.Module,
    PyTorchModelHubMixin,
    library_name="unshuffle",
    license="mit",
    tags=["jigsaw", "permutation"],
):
    """Pieces of a picture, as bytes, to their arrangement on a grid.

    Args:
        rows, cols: of the grid.
        tile: pixels along each side of a piece, which is square.
        mean, std: of each channel over the images it was trained on, on the scale 0 to 1.
        channels, hidden, pair_hidden, steps: see `Assembler`.

    `save_pretrained(folder)` writes config.json and model.safetensors, `Jigsaw.from_pretrained(folder)` reads them, and
    `push_to_hub(name)` publishes them. Nothing is ever unpickled.
    """

    def __init__(
        self,
        rows: int,
        cols: int,
        tile: int,
        mean: Sequence[float],
        std: Sequence[float],
        channels: int = 64,
        hidden: int = 64,
        pair_hidden: Sequence[int] = (128, 64),
        steps: int = 8,
    ) -> None:
        super().__init__()
        self.grid = Grid(rows, cols, neighbours=True)
        self.tile = checks.integer("tile", tile, least=2)
        self.assembler = Assembler(
            self.grid,
            len(mean),
            tile,
            channels=channels,
            hidden=hidden,
            pair_hidden=tuple(pair_hidden),
            steps=steps,
        )
        self.mean: Tensor
        self.std: Tensor
        # They are in the config, as exact as they were measured; the weights may be stored as float16
        self.register_buffer("mean", torch.tensor(mean, dtype=torch.float32), persistent=False)
        self.register_buffer("std", torch.tensor(std, dtype=torch.float32), persistent=False)

    def forward(self, pieces: UInt8[Tensor, "batch n c h w"]) -> Arrangement:
        expected = (self.grid.shape[0] * self.grid.shape[1], len(self.mean), self.tile, self.tile)
        if not isinstance(pieces, Tensor) or pieces.dtype != torch.uint8 or pieces.shape[1:] != expected:
            raise ValueError(
                f"pieces must be a uint8 tensor (batch, N, c, h, w) = (batch, {', '.join(map(str, expected))}), "
                f"got {checks.describe(pieces)}"
            )
        return self.assembler(normalised(pieces, self.mean, self.std))

    def neighbour_costs(self, tiles: UInt8[Tensor, "batch m c h w"]) -> Float[Tensor, "batch 2 m m"]:
        """How badly any tile goes directly above, and directly left of, any other: any number of them."""
        return self.assembler.neighbour_costs(normalised(tiles, self.mean, self.std))

    def extra_repr(self) -> str:
        return f"{self.grid!r}, tile={self.tile}"

    @classmethod
    def _from_pretrained(cls, *, strict: bool = True, **kwargs: Any) -> Jigsaw:
        """Strict unless told otherwise, and silent: the mixin prints where it reads from."""
        with redirect_stdout(StringIO()):
            return super()._from_pretrained(strict=strict, **kwargs)

    @classmethod
    def _load_as_pickle(cls, *_: Any) -> Jigsaw:
        """What the mixin turns to when it finds no safetensors on the hub."""
        raise ValueError("this repository has no model.safetensors, and weights in other formats are not read")
