"""The original bottom-up features: lines of tab-separated values, with boxes and features in base64."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from unshuffle.experiments.problem import Problem
from unshuffle.experiments.vqa.features import writing

FIELDS = ("image_id", "image_w", "image_h", "num_boxes", "boxes", "features")


class Line(NamedTuple):
    """An image with its proposals."""

    image: int
    size: tuple[int, int]  # width, height
    boxes: np.ndarray  # (proposals, 4)
    features: np.ndarray  # (proposals, features)


def lines(path: Path) -> Iterator[Line]:
    """Every image of a file."""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                yield _line(path, number, line.rstrip(b"\r\n").split(b"\t"))
    except OSError as error:
        raise Problem(f"{path} cannot be read: {error.strerror or error}") from error


def _line(path: Path, number: int, values: list[bytes]) -> Line:
    if len(values) != len(FIELDS):
        raise Problem(f"{path}, line {number}: {len(values)} fields, expected {', '.join(FIELDS)}")
    try:
        image, width, height, count = (int(value) for value in values[:4])
        boxes, features = (np.frombuffer(base64.b64decode(value, validate=True), "<f4") for value in values[4:])
    except (ValueError, binascii.Error) as error:
        raise Problem(f"{path}, line {number}: {error}") from error
    if count < 1 or width < 1 or height < 1:
        raise Problem(f"{path}, line {number}: image {image} has {count} boxes on {width}×{height} pixels")
    if len(boxes) != 4 * count or not len(features) or len(features) % count:
        raise Problem(
            f"{path}, line {number}: image {image} says {count} boxes, "
            f"but holds {len(boxes)} coordinates and {len(features)} features"
        )
    return Line(image, (width, height), boxes.reshape(count, 4), features.reshape(count, -1))


def convert(sources: Iterable[Path], target: Path, wanted: set[int] | None = None) -> int:
    """TSV files to one HDF5 file with its index: the `wanted` images, or all; how many there were.

    The published files mix training and validation images, and some images are in two of them.
    """
    chosen = (line for source in sources for line in lines(source) if wanted is None or line.image in wanted)
    first = next(chosen, None)
    if first is None:
        raise Problem("none of the images that are wanted are in the TSV files")
    features = first.features.shape[1]
    with writing(target, features) as writer:
        writer.add(*_arrays(first))
        for line in chosen:
            if line.features.shape[1] != features:
                raise Problem(f"image {line.image} has {line.features.shape[1]} features, the first had {features}")
            if line.image not in writer.rows:
                writer.add(*_arrays(line))
        if wanted is not None and (missing := wanted - writer.rows.keys()):
            raise Problem(f"{len(missing)} of {len(wanted)} images are in no TSV file, such as {min(missing)}")
        return len(writer.rows)


def _arrays(line: Line) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    counts = np.array([len(line.boxes)])
    return np.array([line.image]), counts, line.features, line.boxes, np.array([line.size])
