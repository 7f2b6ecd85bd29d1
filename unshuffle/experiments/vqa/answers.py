"""Answers of VQA v2: how they are written, which ones a model chooses from, and what an answer is worth.

Ten people answer a question. The official accuracy of an answer is min(1, matches / 3) among nine of them, averaged
over the ten ways to leave one out, which comes to 0, .3, .6, .9 or 1 for 0, 1, 2, 3 or more matches. The same score is
the target in training.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Float, Int

PUNCTUATION = ';/[]"{}()=+\\_-><@`,?!'
PERIOD = re.compile(r"\.(?!\d)")
THOUSANDS = re.compile(r"\d,\d")
ARTICLES = {"a", "an", "the"}
DIGITS = "zero one two three four five six seven eight nine ten"
NUMBERS = {"none": "0"} | {word: str(value) for value, word in enumerate(DIGITS.split())}
CONTRACTED = """
    ain't aren't can't could've couldn't couldn't've didn't doesn't don't hadn't hadn't've hasn't haven't he'd he'd've
    he's how'd how'll how's i'd've i'm i've isn't it'd it'd've it'll ma'am mightn't mightn't've might've mustn't must've
    needn't not've o'clock oughtn't 'ow's'at shan't she'd've should've shouldn't shouldn't've somebody'd've somebody'll
    somebody's someone'd someone'd've someone'll someone's something'd something'd've something'll that's there'd
    there'd've there're there's they'd they'd've they'll they're they've 'twas wasn't we'd've we've weren't what'll
    what're what's what've when's where'd where's where've who'd who'd've who'll who's who've why'll why're why's won't
    would've wouldn't wouldn't've y'all y'all'll y'all'd've you'd you'd've you'll you're you've
"""
SCORES = (0.0, 0.3, 0.6, 0.9, 1.0)


def _without_apostrophes(word: str) -> Iterable[str]:
    """Every way to forget some of them."""
    places = [k for k, letter in enumerate(word) if letter == "'"]
    for count in range(1, len(places) + 1):
        for dropped in combinations(places, count):
            yield "".join(letter for k, letter in enumerate(word) if k not in dropped)


CONTRACTIONS = {forgotten: word for word in CONTRACTED.split() for forgotten in _without_apostrophes(word)}


@lru_cache(maxsize=2**16)
def preprocessed(answer: str) -> str:
    """As the official evaluation compares answers: punctuation, case, articles, numbers and apostrophes put right.

    >>> preprocessed("The two dogs, arent they?")
    "2 dogs aren't they"
    """
    cleaned = answer
    for mark in PUNCTUATION:
        drops = f"{mark} " in answer or f" {mark}" in answer or THOUSANDS.search(answer)
        cleaned = cleaned.replace(mark, "" if drops else " ")
    words = (NUMBERS.get(word, word) for word in PERIOD.sub("", cleaned).lower().split())
    return " ".join(CONTRACTIONS.get(word, word) for word in words if word not in ARTICLES)


def judged(answers: Sequence[str]) -> list[str]:
    """What the official evaluation compares with: unanimous answers as they stand, others preprocessed."""
    return list(answers) if len(set(answers)) == 1 else [preprocessed(answer) for answer in answers]


def candidates(chosen: Iterable[str], least: int) -> list[str]:
    """The answers that so many questions have at least, the most frequent first."""
    counts = Counter(preprocessed(answer) for answer in chosen)
    frequent = [answer for answer, count in counts.items() if count >= least]
    return sorted(frequent, key=lambda answer: (-counts[answer], answer))


def soft_scores(answers: Int[Tensor, "batch ten"], count: int) -> Float[Tensor, "batch count"]:
    """Targets over `count` candidates, from the ten answers as numbers of candidates, −1 for none of them."""
    others = answers.clamp_min(-1) + 1  # candidate 0 in column 1; column 0 is dropped
    matches = torch.zeros(len(answers), count + 1, dtype=torch.long, device=answers.device)
    matches.scatter_add_(1, others, torch.ones_like(others))
    return torch.tensor(SCORES, device=answers.device)[matches[:, 1:].clamp_max(len(SCORES) - 1)]


def accuracy(predicted: Int[Tensor, " batch"], answers: Int[Tensor, "batch ten"]) -> Float[Tensor, " batch"]:
    """The official accuracy of each prediction among ten answers, to the letter: leave each of them out in turn."""
    matching = predicted.unsqueeze(-1) == answers
    others = matching.sum(-1, keepdim=True) - matching.long()
    return (others / 3).clamp_max(1).mean(-1)
