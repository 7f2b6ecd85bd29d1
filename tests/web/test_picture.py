import json
import re
from html import unescape

import pytest
import torch
from PIL import Image

from unshuffle import solver
from unshuffle.web import picture


@pytest.fixture(autouse=True)
def _notes(monkeypatch):
    """Outside of a request there is nobody to warn."""
    monkeypatch.setattr(picture.gr, "Warning", lambda message: None)


@pytest.fixture(scope="module")
def solution(photograph):
    given, right = picture.prepared(picture.uploaded(photograph), 3, 1, False)
    return solver.solve(given, 3, 3, seconds=0.2), right


def test_a_film_of_every_step_and_the_exact_answer(solution):
    solution, _ = solution
    film = picture.film(solution, 3)
    frames = json.loads(unescape(re.search(r'data-frames="([^"]*)"', film)[1]))
    assert [frame["caption"] for frame in frames[:2]] == ["start", "step 1"]
    assert frames[-1]["caption"] == "after search"
    assert len(frames) == len(solution.trajectory) + 1
    assert all(set(frame) == {"picture", "P", "caption"} for frame in frames)


def test_the_last_frame_is_the_picture(solution, monkeypatch):
    shown = []
    monkeypatch.setattr(picture, "image_tag", lambda image: shown.append(image) or "")
    picture.film(solution[0], 3)
    expected = solution[0].picture.resize(shown[-1].size)
    apart = torch.tensor(list(shown[-1].tobytes())).sub(torch.tensor(list(expected.tobytes()))).abs().float().mean()
    assert apart < 6  # resizing before or after cutting


def test_costs_of_every_relation(solution):
    assert picture.costs(solution[0], 3).count("<svg") == 4


def test_the_verdict(solution):
    solution, right = solution
    assert picture.verdict(solution, solution.order).startswith("**All 9 pieces are back in place**")
    assert picture.verdict(solution, solution.order.roll(1)).startswith("**0 of 9 pieces in place**")
    assert picture.verdict(solution, None).startswith("Done in")
    assert sorted(right.tolist()) == list(range(9))


@pytest.mark.parametrize(
    ("image", "side", "seed", "words"),
    [
        (Image.new("RGB", (2, 2)), 3, 1, "too few"),
        (None, 3, -1, "The seed is a whole number"),
        (None, 3, None, "The seed is a whole number"),
    ],
)
def test_what_cannot_be_solved_is_said(image, side, seed, words):
    for call in (picture.show, picture.solved):
        _, message, *_ = call(image, side, seed, False)
        assert words in message


def test_a_bad_file_leaves_the_picture_before(tmp_path):
    before, path = Image.new("RGB", (9, 9)), tmp_path / "<img src=x>.png"
    path.write_text("words")
    kept, _, message, _ = picture.receive(path, before, 3, 1, False)
    assert kept is before
    assert "no picture" in message
    assert "<" not in message


def test_the_samples_are_there():
    assert len(picture.samples()) == 4
