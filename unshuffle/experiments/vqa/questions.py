"""Questions and their annotations as VQA v2 keeps them: two JSON files for each split."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unshuffle.experiments.files import read_json, write
from unshuffle.experiments.problem import Problem

TYPES = ("yes/no", "number", "other")


@dataclass(frozen=True)
class Question:
    """A question about an image, and what people answered."""

    number: int
    image: int
    text: str
    answer_type: str
    question_type: str
    answers: tuple[str, ...]
    chosen: str  # the answer that most gave


def read(questions: Path, annotations: Path) -> list[Question]:
    """Every question of a file with its annotation in the other, in the order of the first."""
    asked = _entries(questions, "questions")
    answered = {_field(annotations, "annotation", entry, "question_id", int): entry for entry in _entries(annotations)}
    result = []
    for entry in asked:
        number = _field(questions, "question", entry, "question_id", int)
        if number not in answered:
            raise Problem(f"{annotations} has no annotation of question {number}, which {questions} asks")
        result.append(_question(questions, annotations, number, entry, answered[number]))
    return result


def images_of(questions: Path) -> set[int]:
    """The images that a file asks about."""
    return {_field(questions, "question", entry, "image_id", int) for entry in _entries(questions, "questions")}


def _question(
    questions: Path, annotations: Path, number: int, entry: dict[str, Any], annotation: dict[str, Any]
) -> Question:
    about = f"annotation of question {number}:"
    kind = _field(annotations, about, annotation, "answer_type", str)
    if kind not in TYPES:
        raise Problem(f"{annotations}: question {number} has the unknown answer type {kind!r}; there are {TYPES}")
    given = _field(annotations, about, annotation, "answers", list)
    answers = tuple(_field(annotations, about, answer, "answer", str) for answer in given)
    if not answers:
        raise Problem(f"{annotations}: question {number} has no answers")
    image = _field(questions, f"question {number}:", entry, "image_id", int)
    if annotation.get("image_id", image) != image:
        raise Problem(f"{annotations}: question {number} is about image {annotation['image_id']}, but {questions} "
                      f"says {image}")  # fmt: skip
    return Question(
        number,
        image,
        _field(questions, f"question {number}:", entry, "question", str),
        kind,
        str(annotation.get("question_type", kind)),
        answers,
        str(annotation.get("multiple_choice_answer", most_common(answers))),
    )


def write_split(folder: Path, split: str, questions: Iterable[Question]) -> None:
    """The two files of a split, as `read` reads them."""
    asked, answered = [], []
    for q in questions:
        asked.append({"question_id": q.number, "image_id": q.image, "question": q.text})
        answered.append(
            {
                "question_id": q.number,
                "image_id": q.image,
                "question_type": q.question_type,
                "answer_type": q.answer_type,
                "multiple_choice_answer": q.chosen,
                "answers": [
                    {"answer_id": k, "answer": answer, "answer_confidence": "yes"}
                    for k, answer in enumerate(q.answers, 1)
                ],
            }
        )
    write(folder / f"{split}_questions.json", json.dumps({"questions": asked}))
    write(folder / f"{split}_annotations.json", json.dumps({"annotations": answered}))


def words(text: str) -> list[str]:
    """A question in words, as BAN splits it.

    >>> words("What's the dog's colour, left?")
    ['what', "'s", 'the', 'dog', "'s", 'colour', 'left']
    """
    return text.lower().replace(",", "").replace("?", "").replace("'s", " 's").split()


def most_common(answers: Iterable[str]) -> str:
    return Counter(answers).most_common(1)[0][0]


def _entries(path: Path, name: str = "annotations") -> list[Any]:
    entries = read_json(path, f"a file of VQA {name}").get(name)
    if not isinstance(entries, list) or not entries:
        raise Problem(f"{path} is not a file of VQA {name}: it has no list {name!r}, or an empty one")
    return entries


def _field(path: Path, about: str, entry: Any, name: str, kind: type) -> Any:
    value = entry.get(name) if isinstance(entry, dict) else None
    if not isinstance(value, kind) or isinstance(value, bool):
        raise Problem(f"{path}: {about} {name} must be {kind.__name__}, got {str(entry)[:80]}")
    return value
