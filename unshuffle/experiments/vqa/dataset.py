"""A folder of questions, annotations and features, made ready: every question a row of a few tensors.

The folder holds, for the splits `train` and `val`, one file each that matches

    *train*questions.json    *train*annotations.json    train*.hdf5    train*_imgid2idx.json

which the files of VQA v2 and of BAN do by their own names.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from unshuffle.experiments.problem import Problem
from unshuffle.experiments.vqa import features
from unshuffle.experiments.vqa.answers import candidates, judged, preprocessed
from unshuffle.experiments.vqa.questions import TYPES, Question, read, words

if TYPE_CHECKING:
    from jaxtyping import Int

PADDING, UNKNOWN = 0, 1  # numbers of words that are none


@dataclass(frozen=True)
class Lexicon:
    """The words of the questions and the answers to choose from, by number: what training has seen."""

    words: dict[str, int]
    answers: dict[str, int]

    @classmethod
    def of(cls, questions: list[Question], least: int) -> Lexicon:
        known = sorted({word for question in questions for word in words(question.text)})
        answers = candidates((question.chosen for question in questions), least)
        return cls({word: k for k, word in enumerate(known, UNKNOWN + 1)}, {a: k for k, a in enumerate(answers)})


@dataclass(frozen=True)
class Split:
    """The questions of one split. Answers are numbers of candidates, −1 for an answer that is none."""

    source: features.Source
    images: Int[Tensor, " questions"]  # rows of the source
    tokens: Int[Tensor, "questions length"]  # numbers of words, padded at the end
    answers: Int[Tensor, "questions ten"]  # as training sees them
    judged: Int[Tensor, "questions ten"]  # as the official evaluation sees them
    types: Int[Tensor, " questions"]  # of TYPES
    kinds: tuple[str, ...]  # question_type of each

    def sizes(self) -> Int[Tensor, " questions"]:
        """How many proposals the image of each question has."""
        starts, ends = self.source.spans[self.images].unbind(-1)
        return ends - starts


def load(folder: Path, *, width: int | None, length: int, least: int) -> tuple[Split, Split, Lexicon]:
    """Both splits, checked to the last entry before anything else happens.

    Args:
        width: features that a proposal must have; None takes what there is.
        length: words of a question at the most.
        least: questions of the training split that a candidate answer must have. (BAN counts both splits; here nothing
            is learned from the held-out one.)
    """
    if not folder.is_dir():
        raise Problem(f"there is no folder {folder}; `unshuffle data scenes --out {folder}` makes one")
    asked = {split: _questions(folder, split) for split in ("train", "val")}
    lexicon = Lexicon.of(asked["train"][0], least)
    if not lexicon.answers:
        raise Problem(f"no answer in {asked['train'][1]} is given to {least} questions or more")
    layouts = {split: _layout(folder, split, width) for split in asked}
    widths = [layout.features for layout in layouts.values()]
    if len(set(widths)) > 1:
        raise Problem(f"{layouts['val'].path} has {widths[1]} features, but {layouts['train'].path} has {widths[0]}")
    train, val = (_split(*asked[split], layouts[split], lexicon, length) for split in asked)
    return train, val, lexicon


def _only(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "none"
        raise Problem(f"{folder} must hold one file {pattern}; there is {names}")
    return found[0]


def _questions(folder: Path, split: str) -> tuple[list[Question], Path]:
    path = _only(folder, f"*{split}*questions.json")
    return read(path, _only(folder, f"*{split}*annotations.json")), path


def _layout(folder: Path, split: str, width: int | None) -> features.Layout:
    path = _only(folder, f"{split}*.hdf5")
    index = features.index_of(path)
    pickled = index.with_suffix(".pkl")
    if not index.exists() and pickled.exists():
        raise Problem(f"{index} is missing; `unshuffle data index {pickled}` makes it of {pickled.name}")
    return features.check(path, index, width)


def _split(asked: list[Question], path: Path, layout: features.Layout, lexicon: Lexicon, length: int) -> Split:
    for question in asked:
        if question.image not in layout.rows:
            raise Problem(
                f"{path}: question {question.number} is about image {question.image}, "
                f"which {features.index_of(layout.path)} does not hold"
            )
    people = max(len(question.answers) for question in asked)
    return Split(
        layout.open(),
        torch.tensor([layout.rows[question.image] for question in asked]),
        _padded([[lexicon.words.get(word, UNKNOWN) for word in words(q.text) or [""]] for q in asked], length, PADDING),
        _padded([[lexicon.answers.get(preprocessed(a), -1) for a in q.answers] for q in asked], people, -1),
        _padded([[lexicon.answers.get(a, -1) for a in judged(q.answers)] for q in asked], people, -1),
        torch.tensor([TYPES.index(question.answer_type) for question in asked]),
        tuple(question.question_type for question in asked),
    )


def _padded(rows: list[list[int]], length: int, padding: int) -> Int[Tensor, "rows length"]:
    """Of that length exactly; what is longer is cut."""
    return torch.tensor([row[:length] + [padding] * (length - len(row)) for row in rows])
