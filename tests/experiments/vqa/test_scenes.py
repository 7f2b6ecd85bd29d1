from collections import Counter, defaultdict

import h5py
import numpy as np
import pytest

from unshuffle.experiments.vqa import scenes
from unshuffle.experiments.vqa.dataset import load
from unshuffle.experiments.vqa.kinds import KINDS, Thing
from unshuffle.experiments.vqa.questions import read
from unshuffle.experiments.vqa.scenes import Scenes, write


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scenes")
    write(folder, Scenes(1500, 300))
    return folder


def asked(folder, split="train"):
    return read(folder / f"{split}_questions.json", folder / f"{split}_annotations.json")


def test_the_same_loaders_read_them(made):
    train, val, lexicon = load(made, width=None, length=14, least=9)
    assert (len(train.images), len(val.images)) == (1500, 300)
    assert train.source.features == 32
    assert {"yes", "no", "red", "ball", "0", "5"} <= set(lexicon.answers)
    assert max(len(q.text.split()) for q in asked(made)) <= 14
    assert (train.sizes().min(), train.sizes().max()) == (10, 40)
    assert train.sizes().float().std() > 4


def test_the_splits_share_no_image(made):
    train, val = ({q.image for q in asked(made, split)} for split in ("train", "val"))
    assert not train & val


def test_answers_are_balanced(made):
    given = defaultdict(Counter)
    for question in asked(made):
        given[question.answer_type, question.question_type][question.chosen] += 1
    assert {kind for kind, _ in given} == {"yes/no", "number", "other"}
    for (kind, _), counts in given.items():
        if kind != "number":
            assert max(counts.values()) < 1.3 * min(counts.values()) + 3
        assert max(counts.values()) < 0.55 * counts.total()  # no answer is right without a look


def test_ten_people_with_noise(made):
    shares = []
    for question in asked(made):
        assert len(question.answers) == 10
        assert question.chosen == Counter(question.answers).most_common(1)[0][0]
        shares.append(question.answers.count(question.chosen) / 10)
    assert 0.85 < np.mean(shares) < 0.95


def test_the_seed_decides_everything(made, tmp_path):
    write(tmp_path / "again", Scenes(1500, 300))
    write(tmp_path / "other", Scenes(1500, 300, seed=1))
    assert asked(made) == asked(tmp_path / "again")
    assert asked(made) != asked(tmp_path / "other")
    with h5py.File(made / "train.hdf5") as one, h5py.File(tmp_path / "again" / "train.hdf5") as two:
        assert all(np.array_equal(one[name], two[name]) for name in one)


def test_proposals_belong_to_objects():
    random = np.random.default_rng(0)
    drawn = scenes.draw(200, random)
    codes = scenes.codebook(Scenes())
    counts, values, boxes = scenes.detect(drawn, codes, 0.0, random)
    ends = counts.cumsum()
    for row in range(200):
        own = slice(ends[row] - counts[row], ends[row])
        things = drawn.there[row].nonzero()[0]
        kinds = (drawn.shape, drawn.colour, drawn.size, drawn.number)
        looks = sum(table[kind[row, things]] for table, kind in zip(codes, kinds, strict=True))
        centres = (boxes[own, :2] + boxes[own, 2:]) / 2
        nearest = np.abs(centres[:, None] - drawn.centre[row, things]).sum(-1).argmin(1)
        assert set(nearest) == set(range(len(things)))
        np.testing.assert_allclose(values[own], looks[nearest], rtol=1e-5, atol=1e-5)


def test_objects_stand_from_left_to_right():
    drawn = scenes.draw(500, np.random.default_rng(0))
    x = np.where(drawn.there, drawn.centre[..., 0], np.inf)
    there = drawn.there[:, 1:]
    assert (x[:, 1:][there] - x[:, :-1][there] > 40).all()
    assert set(drawn.there.sum(1)) == set(range(4, 10))


SCENE = [Thing("ball", "red", "small", "4"), Thing("box", "red", "large", "1"), Thing("ball", "blue", "small", "5"),
         Thing("star", "green", "large", "2"), Thing("ball", "red", "small", "3")]  # fmt: skip
ANSWERS = {
    "how many balls are there?": "3",
    "how many boxes are there?": "1",
    "how many cones are there?": "0",
    "how many red objects are there?": "3",
    "how many different colours do the balls have?": "2",
    "how many different shapes do the red objects have?": "2",
    "how many different shapes do the yellow objects have?": "0",
    "what number is on the first ball from the left?": "4",
    "what number is on the second red object from the left?": "1",
    "what number is on the last ball from the left?": "3",
    "what number is on the first star from the left?": None,  # there is only one
    "is there a red object left of a box?": "yes",
    "is there a blue object left of a box?": "no",
    "is there a blue object right of a star?": "no",
    "is there a red object right of a star?": "yes",
    "is the second ball from the left blue?": "yes",
    "is the first red object from the left a box?": "no",
    "are there more balls than boxes?": "yes",
    "are there more cones than yellow objects?": None,
    "are there more green objects than blue objects?": "no",
    "what colour is the second ball from the left?": "blue",
    "what colour is the last ball from the left?": "red",
    "what shape is the second red object from the left?": "box",
    "which shape is between the box and the star?": "ball",
    "which colour is between the box and the green object?": "blue",
    "which colour is between the red object and the star?": None,  # there are three
}


@pytest.mark.parametrize("text", ANSWERS)
def test_answers_by_hand(text):
    found = {asked: answer for kind in KINDS for asked, answer in kind.of(SCENE)}
    assert found.get(text) == ANSWERS[text]


def test_no_text_has_two_answers():
    texts = [text for kind in KINDS for text, _ in kind.of(SCENE)]
    assert len(texts) == len(set(texts))
