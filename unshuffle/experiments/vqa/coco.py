"""COCO-QA on COCO's own boxes, in the formats of VQA v2: real questions, about objects that people have marked.

What is read is a folder with `questions.jsonl` (question_id, image_id, split, type, question, answer) and
`objects.jsonl` (image_id, width, height, objects: class, box in pixels, thumbnail: 4×4 colours in base64). An object's
features are its class, one of COCO's 80, its box, and the colours of its thumbnail. There is one answer to a question,
which stands for all ten.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np

from unshuffle.experiments.problem import Problem
from unshuffle.experiments.vqa import features
from unshuffle.experiments.vqa.questions import Question, write_split

SPLITS = {"train": "train", "test": "val"}
THUMBNAIL = 4 * 4 * 3  # bytes
PEOPLE = 10


def convert(source: Path, folder: Path) -> dict[str, int]:
    """Both splits; how many questions each has."""
    photos = {photo["image_id"]: photo for photo in _lines(source / "objects.jsonl", PHOTO)}
    asked = _lines(source / "questions.jsonl", QUESTION)
    classes = sorted({thing["class"] for photo in photos.values() for thing in photo["objects"]})
    counts = {}
    for split, name in SPLITS.items():
        questions = [entry for entry in asked if entry["split"] == split]
        images = sorted({entry["image_id"] for entry in questions})
        if not questions:
            raise Problem(f"{source / 'questions.jsonl'} has no question of the split {split}")
        with features.writing(folder / f"{name}.hdf5", len(classes) + 4 + THUMBNAIL) as writer:
            for image in images:
                if image not in photos:
                    raise Problem(f"{source / 'objects.jsonl'} has no image {image}, which a question is about")
                writer.add(*_arrays(source / "objects.jsonl", photos[image], classes))
        write_split(folder, name, [_question(entry) for entry in questions])
        counts[name] = len(questions)
    return counts


PHOTO: dict[str, type] = {"image_id": int, "width": int, "height": int, "objects": list}
QUESTION: dict[str, type] = {
    "question_id": int,
    "image_id": int,
    "split": str,
    "type": str,
    "question": str,
    "answer": str,
}
THING: dict[str, type] = {"class": str, "box": list, "thumbnail": str}


def _lines(path: Path, fields: dict[str, type]) -> list[dict[str, Any]]:
    """A JSON object from every line, with fields of these types."""
    try:
        with path.open(encoding="utf-8") as file:
            entries = [json.loads(line) for line in file]
    except OSError as error:
        raise Problem(f"{path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise Problem(f"{path} is not a file of JSON lines: {error}") from error
    for number, entry in enumerate(entries, 1):
        _check(f"{path}, line {number}", entry, fields)
        for thing in entry.get("objects", []):
            _check(f"{path}, line {number}, an object", thing, THING)
    return entries


def _check(where: str, entry: Any, fields: dict[str, type]) -> None:
    for name, kind in fields.items():
        if not isinstance(entry, dict) or not isinstance(entry.get(name), kind):
            raise Problem(f"{where}: {name} must be {kind.__name__}, got {str(entry)[:80]}")


def _arrays(
    path: Path, photo: dict[str, Any], classes: list[str]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    things, size = photo["objects"], np.array([photo["width"], photo["height"]])
    if not things:
        raise Problem(f"{path}: image {photo['image_id']} has no objects: an empty set")
    try:
        boxes = np.array([thing["box"] for thing in things], np.float32).reshape(-1, 4)
        pixels = [np.frombuffer(base64.b64decode(thing["thumbnail"]), np.uint8) for thing in things]
        colours = np.stack(pixels).reshape(-1, THUMBNAIL) / np.float32(255) - 0.5
    except ValueError as error:
        raise Problem(f"{path}: image {photo['image_id']}: {error}") from error
    one_hot = np.eye(len(classes), dtype=np.float32)[[classes.index(thing["class"]) for thing in things]]
    values = np.concatenate([one_hot, boxes / np.tile(size, 2), colours], 1).astype(np.float32)
    return np.array([photo["image_id"]]), np.array([len(things)]), values, boxes, size[None]


def _question(entry: dict[str, Any]) -> Question:
    kind = "number" if entry["type"] == "number" else "other"
    answer = entry["answer"]
    return Question(
        entry["question_id"], entry["image_id"], entry["question"], kind, entry["type"], (answer,) * PEOPLE, answer
    )
