"""Random images in the hub's layout: something to measure and to test with where there is no dataset."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import interpolate

from unshuffle.experiments.data import SOURCES


def smooth(count: int, channels: int, size: int, seed: int = 0) -> Tensor:
    """Bytes (count, c, size, size) that vary slowly and grow brighter down and to the right: easily put in order."""
    generator = torch.Generator().manual_seed(seed)
    down, along = torch.arange(5) / 10, torch.arange(5) / 20
    coarse = down[:, None] + along + 0.4 * torch.rand(count, channels, 5, 5, generator=generator)
    return interpolate(coarse, (size, size), mode="bicubic", align_corners=True).clamp(0, 1).mul(255).to(torch.uint8)


def write_hub(root: Path, name: str, train: int, test: int) -> None:
    """A dataset of that name with so many images in each split, as parquet files that `data.load` reads."""
    import datasets
    from PIL import Image

    source = SOURCES[name]
    folder = root / source.hub / "data"
    folder.mkdir(parents=True, exist_ok=True)
    for seed, (split, count) in enumerate({"train": train, source.test: test}.items()):
        channels = 1 if source.mode == "L" else 3
        pixels = smooth(count, channels, source.size, seed).movedim(1, -1).squeeze(-1).numpy()
        rows = {source.image: [Image.fromarray(image) for image in pixels], "label": [k % 10 for k in range(count)]}
        features = datasets.Features({source.image: datasets.Image(), "label": datasets.Value("int64")})
        table = datasets.Dataset.from_dict(rows, features=features)
        table.to_parquet(folder / f"{split}-00000-of-00001.parquet")
