import itertools

import pytest
import torch

from unshuffle.experiments.vqa.answers import accuracy, candidates, judged, preprocessed, soft_scores


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("Yes", "yes"),
        ("two", "2"),
        ("none", "0"),
        ("the red one.", "red 1"),
        ("an apple", "apple"),
        ("dont know", "don't know"),
        ("couldntve", "couldn't've"),
        ("couldn'tve", "couldn't've"),
        ("t-shirt", "t shirt"),
        ("black/white", "black white"),
        ("black, white", "black white"),
        ("black ,white", "black white"),
        ("1,000", "1000"),
        ("3.5 m.", "3.5 m"),
        ("well", "well"),
        ("", ""),
    ],
)
def test_preprocessed(given, expected):
    assert preprocessed(given) == expected
    assert preprocessed(expected) == expected


def test_unanimous_answers_are_judged_as_they_stand():
    assert judged(["T-shirt"] * 10) == ["T-shirt"] * 10
    assert judged(["T-shirt"] * 9 + ["the shirt"]) == ["t shirt"] * 9 + ["shirt"]


def test_candidates_have_enough_questions():
    chosen = ["yes"] * 3 + ["No", "no"] + ["two", "2", "the 2"] + ["rare"]
    assert candidates(chosen, 2) == ["2", "yes", "no"]
    assert candidates(chosen, 4) == []


@pytest.mark.parametrize(("matches", "score"), [(0, 0.0), (1, 0.3), (2, 0.6), (3, 0.9), (4, 1.0), (10, 1.0)])
def test_ten_answers(matches, score):
    """Counted by hand: 3 matches are 3/3 in the seven subsets that keep all of them, and 2/3 in three."""
    answers = torch.tensor([[5] * matches + [-1] * (10 - matches)])
    assert accuracy(torch.tensor([5]), answers).item() == pytest.approx(score)
    assert soft_scores(answers, 7)[0, 5].item() == pytest.approx(score)


def test_accuracy_is_the_mean_over_subsets_of_nine():
    answers = torch.randint(-1, 4, (50, 10))
    predicted = torch.randint(0, 4, (50,))
    for got, mine, theirs in zip(accuracy(predicted, answers), predicted, answers, strict=True):
        subsets = itertools.combinations(theirs.tolist(), 9)
        expected = sum(min(1, subset.count(mine.item()) / 3) for subset in subsets) / 10
        assert got.item() == pytest.approx(expected)


def test_targets_are_the_accuracy_of_every_candidate():
    answers = torch.randint(-1, 4, (50, 10))
    targets = soft_scores(answers, 4)
    for candidate in range(4):
        torch.testing.assert_close(targets[:, candidate], accuracy(torch.full((50,), candidate), answers))


def test_an_answer_that_is_no_candidate_counts_for_nobody():
    assert soft_scores(torch.full((1, 10), -1), 3).tolist() == [[0.0, 0.0, 0.0]]
