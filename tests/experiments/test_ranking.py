import csv
import io

import pytest
import torch

from unshuffle.experiments.comparisons import Comparisons
from unshuffle.experiments.ranking import Ranking, rank


def circle():
    """Tea beats coffee three times, coffee water twice, water tea once."""
    return Comparisons(
        ["water", "coffee", "tea"],
        torch.tensor([2, 1, 0]), torch.tensor([1, 0, 2]), torch.tensor([3.0, 2.0, 1.0]).double(),
    )  # fmt: skip


def test_contradicts_the_lightest():
    ranking = rank(circle())
    assert ranking.order.tolist() == [2, 1, 0]
    assert ranking.contradicted() == (1, 1.0)
    assert Ranking(circle(), torch.tensor([0, 1, 2])).contradicted() == (2, 5.0)


def test_rows():
    assert rank(circle()).rows() == [
        (1, "tea", 0.75, 3.0, 1.0),
        (2, "coffee", pytest.approx(0.4), 2.0, 3.0),
        (3, "water", pytest.approx(1 / 3), 1.0, 2.0),
    ]


def test_an_item_without_comparisons():
    comparisons = Comparisons(["a", "b", "c"], torch.tensor([1]), torch.tensor([0]), torch.ones(1).double())
    scores = {name: score for _, name, score, _, _ in rank(comparisons).rows()}
    assert scores == {"a": 0.0, "b": 1.0, "c": 0.0}


def test_csv_comes_back():
    names = ['a "quoted", name', "b", "é"]
    comparisons = Comparisons(names, torch.tensor([0, 1]), torch.tensor([1, 2]), torch.ones(2).double())
    header, *rows = csv.reader(io.StringIO(rank(comparisons).csv()))
    assert header == ["place", "name", "score", "won", "lost"]
    assert rows[0] == ["1", names[0], "1.0000", "1", "0"]
    assert [row[1] for row in rows] == names
