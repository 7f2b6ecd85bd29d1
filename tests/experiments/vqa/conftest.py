import numpy as np
import pytest

from unshuffle.experiments.vqa import features
from unshuffle.experiments.vqa.questions import Question, write_split

WIDTH = 5


def proposals(images, random):
    """Arrays of a file of features: images of 1, 2, 3, … proposals."""
    counts = np.arange(1, len(images) + 1)
    total = counts.sum()
    values = random.standard_normal((total, WIDTH)).astype("float32")
    corner, extent = random.uniform(0, 50, (total, 2)), random.uniform(5, 40, (total, 2))
    boxes = np.concatenate([corner, corner + extent], 1).astype("float32")
    return np.array(images), counts, values, boxes, np.tile([100, 200], (len(images), 1))


def write_features(path, images=(11, 12, 13, 14), seed=0):
    arrays = proposals(list(images), np.random.default_rng(seed))
    with features.writing(path, WIDTH) as writer:
        writer.add(*arrays)
    return arrays


def question(number, image=11, text="how many cats?", kind="number", answers=("2",) * 9 + ("3",), chosen="2"):
    return Question(number, image, text, kind, "how many", tuple(answers), chosen)


@pytest.fixture
def folder(tmp_path):
    """A small data set in the layout of VQA v2 and BAN."""
    asked = [
        question(1),
        question(2, 12, "is it Tom's cat, a red one?", "yes/no", ("yes",) * 8 + ("no", "maybe"), "yes"),
        question(3, 14, "what colour is the cat?", "other", ("red",) * 2 + ("dark red",) * 8, "dark red"),
    ]
    for split, seed in (("train", 0), ("val", 1)):
        write_features(tmp_path / f"{split}.hdf5", seed=seed)
        write_split(tmp_path, split, asked)
    return tmp_path
