import json
import re
from html import unescape

import pytest
import torch

from unshuffle.experiments.problem import Problem
from unshuffle.web import numbers


def frames(film):
    return json.loads(unescape(re.search(r'data-frames="([^"]*)"', film)[1]))


def test_what_is_typed():
    assert numbers.read(" 0.5, -1;2e1\n3 ").flatten().tolist() == [0.5, -1.0, 20.0, 3.0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "Type 2 to 24 numbers, separated by commas; these are 0"),
        ("1", "these are 1"),
        ("1," * 25, "these are 25"),
        ("1, two", "“two” is not a number"),
        ("1, nan", "“nan” is out of range"),
        ("1, 1e9", "“1e9” is out of range"),
        ("1, " + "<b>" * 99, "“<b><b><b><b><b><b><b” is not a number"),
    ],
)
def test_what_cannot_be_sorted(text, words):
    with pytest.raises(Problem, match=re.escape(words)):
        numbers.read(text)


def test_the_shipped_layer_sorts():
    film, message = numbers.sort(numbers.FIRST, numbers.STEPS, numbers.learned_step_size(), 1.0)
    assert message == "**Sorted:** 0.05, 0.15, 0.33, 0.51, 0.62, 0.74, 0.87, 0.98"
    assert [frame["caption"] for frame in frames(film)] == ["start", *(f"step {k}" for k in range(1, 7))]


def test_random_sets_of_all_sizes():
    for count in (2, 10, numbers.MOST):
        _, message = numbers.sort(numbers.drawn(count), numbers.STEPS, numbers.learned_step_size(), 1.0)
        assert message.startswith("**Sorted:**")


def test_no_step_sorts_nothing():
    film, message = numbers.sort("0.9, 0.1", 0, 1.0, 1.0)
    assert message.startswith("**Not quite sorted:**")
    assert len(frames(film)) == 1


def test_the_settings_reach_the_descent(monkeypatch):
    seen = {}
    draw = numbers.draw

    def watch(x, trajectory, costs, plays):
        seen.update(trajectory=trajectory, costs=costs)
        return draw(x, trajectory, costs, plays)

    monkeypatch.setattr(numbers, "draw", watch)
    sharp, soft = [], []
    for found, temperature in ((sharp, 0.2), (soft, 5.0)):
        numbers.sort(numbers.FIRST, 4, 2.0, temperature)
        assert len(seen["trajectory"]) == 5
        found.append(torch.special.entr(seen["trajectory"][-1]).sum())
    assert sharp[0] < soft[0]
    torch.testing.assert_close(seen["costs"], -seen["costs"].mT)
