"""Image datasets as bytes in memory: read once through `datasets`, decoded once, cached as one tensor.

A dataset is one of `SOURCES` by name, from the Hugging Face hub or from a local folder of the same layout, or any
folder of images. What happens per image happens here, once; a training step works on whole batches.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from safetensors.torch import save as to_bytes
from torch import Tensor

from unshuffle.experiments.files import write
from unshuffle.experiments.problem import Problem
from unshuffle.tiles import normalised as normalised

if TYPE_CHECKING:
    from jaxtyping import Float, Int, UInt8


@dataclass(frozen=True)
class Source:
    """Where a dataset is and what its columns are called. Images come out square, `size` pixels a side."""

    hub: str
    image: str
    test: str
    mode: str
    size: int


SOURCES = {
    "mnist": Source("ylecun/mnist", "image", "test", "L", 28),
    "cifar10": Source("uoft-cs/cifar10", "img", "test", "RGB", 32),
    "tiny-imagenet": Source("zh-plus/tiny-imagenet", "image", "valid", "RGB", 64),
}
FOLDER_SIZE = 64  # the paper's size for ImageNet
HELD_OUT = 10  # of a folder, one image in so many is for testing


@dataclass(frozen=True)
class Images:
    """One split: bytes and labels, with the mean and standard deviation of the training split's channels."""

    pixels: UInt8[Tensor, "count c h w"]
    labels: Int[Tensor, " count"]
    mean: Float[Tensor, " c"]
    std: Float[Tensor, " c"]


def load(dataset: str, *, root: Path | None = None) -> tuple[Images, Images]:
    """The training and test split of a dataset by name, or of a folder of images by path."""
    if dataset in SOURCES:
        source = SOURCES[dataset]
        train, test = (_cached(_open(dataset, source, split, root), source) for split in ("train", source.test))
    elif Path(dataset).is_dir():
        train, test = _folder(Path(dataset))
    else:
        raise Problem(f"unknown dataset {dataset!r}: pass one of {', '.join(SOURCES)}, or a folder of images")
    mean, std = moments(train[0])
    return Images(*train, mean, std), Images(*test, mean, std)


def data_root(given: Path | None) -> Path | None:
    """`--data-root`, or UNSHUFFLE_DATA; without either, the hub answers."""
    named = given or (Path(os.environ["UNSHUFFLE_DATA"]) if os.environ.get("UNSHUFFLE_DATA") else None)
    if named is not None and not named.is_dir():
        raise Problem(f"there is no folder {named}; --data-root (or UNSHUFFLE_DATA) names one that holds datasets")
    return named


def moments(pixels: UInt8[Tensor, "count c h w"]) -> tuple[Float[Tensor, " c"], Float[Tensor, " c"]]:
    """Mean and standard deviation of each channel on the scale 0 to 1, exactly: bytes need only be counted."""
    counts = torch.stack([torch.bincount(channel.flatten(), minlength=256) for channel in pixels.unbind(1)]).double()
    share, values = counts / counts.sum(1, keepdim=True), torch.arange(256, dtype=torch.float64) / 255
    mean = share @ values
    variance = (share * (values - mean[:, None]).square()).sum(1)
    return mean.float(), variance.sqrt().clamp_min(1e-6).float()


def _open(name: str, source: Source, split: str, root: Path | None) -> Any:
    """One split as a `datasets.Dataset`, from the folder if it has it, else from the hub."""
    import datasets

    local = None if root is None else root / source.hub
    datasets.disable_progress_bars()
    try:
        if local is not None and local.is_dir():
            return datasets.load_dataset(str(local), split=split)
        return datasets.load_dataset(source.hub, split=split)
    except Exception as error:  # whatever the hub's client raises, the user can do the same about it
        looked = "" if root is None else f" in {root} or"
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise Problem(
            f"dataset {name!r} was not found{looked} on the hub as {source.hub} ({reason}); "
            f"pass --data-root DIR, or set UNSHUFFLE_DATA, to a folder that holds {source.hub}"
        ) from error


def _cached(dataset: Any, source: Source) -> tuple[Tensor, Tensor]:
    """Pixels and labels of a split, decoded the first time and read from one file after that."""
    return _through_cache(
        f"{dataset._fingerprint}-{source.mode}-{source.size}",
        lambda: _decode((row[source.image] for row in dataset), len(dataset), source.mode, source.size),
        lambda: torch.tensor(dataset["label"][:] if "label" in dataset.column_names else [0] * len(dataset)),
    )


def _folder(folder: Path) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Any folder of images, by the names of its files; a subfolder is a class."""
    from PIL import Image

    readable = Image.registered_extensions()
    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in readable and path.is_file())
    if len(paths) < HELD_OUT:
        raise Problem(
            f"{folder} holds {len(paths)} images; at least {HELD_OUT} are needed, one in {HELD_OUT} for testing"
        )
    stamp = json.dumps([[str(path), path.stat().st_size, path.stat().st_mtime_ns] for path in paths])
    classes = {name: label for label, name in enumerate(sorted({str(path.parent) for path in paths}))}
    pixels, labels = _through_cache(
        f"{hashlib.sha256(stamp.encode()).hexdigest()[:16]}-RGB-{FOLDER_SIZE}",
        lambda: _decode((Image.open(path) for path in paths), len(paths), "RGB", FOLDER_SIZE),
        lambda: torch.tensor([classes[str(path.parent)] for path in paths]),
    )
    # By a digest of its name, so that classes mix, and a new file does not move the others from one split to the other
    drawn = torch.tensor([_drawn(path.relative_to(folder)) for path in paths])
    test = drawn < max(1 / HELD_OUT, drawn.min().item() + 1e-9)
    return (pixels[~test], labels[~test]), (pixels[test], labels[test])


def _drawn(path: Path) -> float:
    """A number from 0 to 1 that is always the same for a file."""
    return int.from_bytes(hashlib.sha256(path.as_posix().encode()).digest()[:6], "big") / 2**48


def _through_cache(key: str, pixels: Any, labels: Any) -> tuple[Tensor, Tensor]:
    path = Path(os.environ.get("UNSHUFFLE_CACHE", Path.home() / ".cache" / "unshuffle")) / f"{key}.safetensors"
    if path.exists():
        try:
            tensors = load_file(path)
            return tensors["pixels"], tensors["labels"]
        except (SafetensorError, KeyError):
            path.unlink()  # not ours, or damaged: it is only a cache
    tensors = {"pixels": pixels(), "labels": labels()}
    write(path, to_bytes(tensors))
    return tensors["pixels"], tensors["labels"]


def _decode(images: Iterable[Any], count: int, mode: str, size: int) -> Tensor:
    """PIL images to one uint8 tensor: centre-cropped to a square and resized where they are not that size."""
    from PIL import UnidentifiedImageError
    from rich.progress import track

    result = torch.empty(count, 1 if mode == "L" else 3, size, size, dtype=torch.uint8)
    try:
        for target, image in zip(
            result, track(images, "decoding images, once", total=count, transient=True), strict=True
        ):
            image = image.convert(mode)
            if image.size != (size, size):
                side = min(image.size)
                left, top = (image.width - side) // 2, (image.height - side) // 2
                image = image.resize((size, size), box=(left, top, left + side, top + side))
            target.copy_(torch.from_numpy(np.array(image)).reshape(size, size, -1).movedim(-1, 0))
    except (UnidentifiedImageError, OSError) as error:
        raise Problem(f"an image cannot be read: {error}") from error
    return result
