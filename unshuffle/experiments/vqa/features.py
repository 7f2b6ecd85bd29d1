"""Object proposals in the HDF5 layout that BAN reads, of any number of proposals in each image.

    image_features    (proposals, features)  of each proposal
    image_bb          (proposals, 4)         x1, y1, x2, y2 in pixels
    spatial_features  (proposals, 6)         x1, y1, x2, y2, width, height as shares of the image's
    pos_boxes         (images, 2)            the proposals from … up to … belong to the image

Beside it an index, from the number of an image to its row in pos_boxes, as JSON. The files of VQA v2 are tens of
gigabytes: they are read as batches ask for them, smaller ones once, as a whole.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import h5py
import numpy as np
import torch
from torch import Tensor

from unshuffle.experiments.files import read_json, replacing, write
from unshuffle.experiments.problem import Problem

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

WIDTHS = {"image_features": None, "image_bb": 4, "spatial_features": 6}  # None: as many as there are
IN_MEMORY = 2 * 2**30  # bytes of features up to which a file is read at once


class Proposals(NamedTuple):
    """The sets of a batch. Boxes are shares of the image's width and height; padding is zero."""

    features: Float[Tensor, "batch n features"]
    boxes: Float[Tensor, "batch n 4"]
    mask: Bool[Tensor, "batch n"]


class Source(Protocol):
    """Where the proposals of images come from: `InMemory` or `OnDisk`."""

    features: int  # of a proposal
    spans: Int[Tensor, "images 2"]  # where each image's proposals begin and end

    def take(self, images: Int[Tensor, " batch"]) -> Proposals: ...  # by the rows of pos_boxes


@dataclass(frozen=True)
class Layout:
    """A file that was found to be whole: its images by number, and where each one's proposals are."""

    path: Path
    rows: dict[int, int]  # an image's number -> its row in spans
    spans: Int[Tensor, "images 2"]
    features: int

    def open(self) -> Source:
        size = 4 * int(self.spans[:, 1].max()) * self.features
        return InMemory(self) if size <= IN_MEMORY else OnDisk(self)


class InMemory:
    """All proposals in one tensor; a batch is one indexing."""

    def __init__(self, layout: Layout) -> None:
        self.spans, self.features = layout.spans, layout.features
        with opened(layout.path) as file:
            self.values = torch.from_numpy(file["image_features"][:]).float()
            self.boxes = torch.from_numpy(file["spatial_features"][:, :4]).float()
        for name, values in (("image_features", self.values), ("spatial_features", self.boxes)):
            if not values.isfinite().all():
                row = int((~values.isfinite()).any(1).nonzero()[0])
                raise Problem(f"{layout.path}: row {row} of {name} holds a value that is not a number")

    def take(self, images: Int[Tensor, " batch"]) -> Proposals:
        starts, ends = self.spans[images].unbind(-1)
        mask = torch.arange(int((ends - starts).max())) < (ends - starts).unsqueeze(-1)
        rows = (starts.unsqueeze(-1) + torch.arange(mask.shape[1])).where(mask, starts.unsqueeze(-1))
        padded = ~mask.unsqueeze(-1)
        return Proposals(self.values[rows].masked_fill_(padded, 0.0), self.boxes[rows].masked_fill_(padded, 0.0), mask)


class OnDisk:
    """A file too large for memory, read as batches ask for it."""

    def __init__(self, layout: Layout) -> None:
        self.path, self.spans, self.features = layout.path, layout.spans, layout.features
        self.file: Any = None

    def take(self, images: Int[Tensor, " batch"]) -> Proposals:
        self.file = self.file or h5py.File(self.path, "r")  # here, so that every process opens its own
        spans = self.spans[images].tolist()
        size = max(end - start for start, end in spans)
        features, boxes = torch.zeros(len(spans), size, self.features), torch.zeros(len(spans), size, 4)
        mask = torch.zeros(len(spans), size, dtype=torch.bool)
        for row, (start, end) in enumerate(spans):
            features[row, : end - start] = self.read("image_features", start, end)
            boxes[row, : end - start] = self.read("spatial_features", start, end)[:, :4]
            mask[row, : end - start] = True
        return Proposals(features, boxes, mask)

    def read(self, name: str, start: int, end: int) -> Tensor:
        try:
            return torch.from_numpy(self.file[name][start:end]).float()
        except OSError as error:
            raise Problem(f"{self.path}: rows {start} to {end} of {name} cannot be read: {error}") from error


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """An HDF5 file for reading."""
    try:
        with h5py.File(path, "r") as file:
            yield file
    except OSError as error:
        raise Problem(f"{path} cannot be read as HDF5 (missing, cut short, or something else): {error}") from error


def check(path: Path, index: Path, features: int | None = None) -> Layout:
    """A file and its index, found to be whole and to agree. `features` is how many a proposal must have, if given."""
    with opened(path) as file:
        shapes = {name: _shape(path, file, name) for name in (*WIDTHS, "pos_boxes")}
        total = shapes["image_features"][0]
        for name, width in (WIDTHS | {"image_features": features}).items():
            rows, found = shapes[name]
            if rows != total or (width is not None and found != width):
                expected = f"({total}, {found if width is None else width})"
                raise Problem(f"{path}: {name} is ({rows}, {found}), expected {expected}")
        if shapes["pos_boxes"][1] != 2:
            raise Problem(f"{path}: pos_boxes is {shapes['pos_boxes']}, expected (images, 2)")
        spans = torch.from_numpy(file["pos_boxes"][:].astype(np.int64))
    images = read_index(index)
    _check_spans(path, index, images, spans, total)
    return Layout(path, images, spans, shapes["image_features"][1])


def _shape(path: Path, file: Any, name: str) -> tuple[int, int]:
    if not isinstance(file.get(name), h5py.Dataset):
        raise Problem(f"{path} has no dataset {name}; it needs {', '.join((*WIDTHS, 'pos_boxes'))}")
    shape = file[name].shape
    if len(shape) != 2:
        raise Problem(f"{path}: {name} has the shape {shape}, expected two dimensions")
    return shape


def _check_spans(path: Path, index: Path, rows: dict[int, int], spans: Tensor, total: int) -> None:
    """Every image of the index has proposals of its own, and no proposal is left over."""
    used = 0
    end_before, before = 0, None
    try:
        ordered = sorted(rows.items(), key=lambda item: spans[item[1]].tolist())
    except IndexError:
        image = next(image for image, row in rows.items() if not 0 <= row < len(spans))
        raise Problem(f"{index}: image {image} is at row {rows[image]}; {path} has {len(spans)} images") from None
    for image, row in ordered:
        start, end = spans[row].tolist()
        if end == start:
            raise Problem(f"{path}: image {image} (row {row} of pos_boxes) has no proposals: an empty set")
        if not 0 <= start < end <= total:
            raise Problem(f"{path}: pos_boxes gives image {image} the proposals {start} to {end}; there are {total}")
        if start < end_before:
            raise Problem(f"{path}: pos_boxes gives images {before} and {image} the same proposals, from {start}")
        used, end_before, before = used + end - start, end, image
    if used != total:
        raise Problem(f"{path} has {total} proposals, but pos_boxes gives the images of {index} {used} together")


def read_index(path: Path) -> dict[int, int]:
    """The row of every image."""
    content = read_json(path, "an index of images")
    try:
        rows = {int(image): int(row) for image, row in content.items() if not isinstance(row, (bool, float))}
    except (ValueError, TypeError):
        rows = {}
    if len(rows) != len(content) or not rows or min(rows.values()) < 0:
        raise Problem(f"{path} is not an index of images: it must hold pairs of an image's number and its row")
    return rows


def write_index(path: Path, rows: dict[int, int]) -> None:
    write(path, json.dumps({str(image): row for image, row in rows.items()}) + "\n")


def index_of(path: Path) -> Path:
    """Where the index of a file of features stands, as BAN names it: train.hdf5 and train_imgid2idx.json."""
    return path.with_name(f"{path.stem}_imgid2idx.json")


class Writer:
    """Writes a file image by image; see `writing`."""

    def __init__(self, file: Any, features: int) -> None:
        self.file, self.rows, self.end = file, dict[int, int](), 0
        for name, width in (WIDTHS | {"image_features": features, "pos_boxes": 2}).items():
            kind = "int32" if name == "pos_boxes" else "float32"
            file.create_dataset(name, (0, width), kind, maxshape=(None, width), chunks=(64, width))

    def add(
        self, images: np.ndarray, counts: np.ndarray, features: np.ndarray, boxes: np.ndarray, sizes: np.ndarray
    ) -> None:
        """Images by number, how many proposals each has, these one after the other, and (width, height) of each."""
        of_each = np.repeat(sizes, counts, 0).astype(np.float32)  # (proposals, 2)
        corners = boxes / np.tile(of_each, 2)
        spatial = np.concatenate([corners, corners[:, 2:] - corners[:, :2]], 1)
        ends = self.end + np.cumsum(counts)
        self.rows |= {int(image): len(self.rows) + k for k, image in enumerate(images)}
        self.end = int(ends[-1])
        self.append("image_features", features)
        self.append("image_bb", boxes)
        self.append("spatial_features", spatial)
        self.append("pos_boxes", np.stack([ends - counts, ends], 1))

    def append(self, name: str, values: np.ndarray) -> None:
        dataset = self.file[name]
        dataset.resize(len(dataset) + len(values), 0)
        dataset[-len(values) :] = values


@contextmanager
def writing(path: Path, features: int) -> Iterator[Writer]:
    """A new file and its index, which appear when both are whole."""
    with replacing(path) as beside:
        with h5py.File(beside, "w") as file:
            writer = Writer(file, features)
            yield writer
        write_index(index_of(path), writer.rows)
