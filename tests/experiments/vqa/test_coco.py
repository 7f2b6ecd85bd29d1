import base64
import json

import h5py
import numpy as np
import pytest

from unshuffle.experiments.problem import Problem
from unshuffle.experiments.vqa.coco import convert
from unshuffle.experiments.vqa.dataset import load

THUMBNAIL = base64.b64encode(bytes(range(48))).decode()
CAT = {"class": "cat", "box": [10, 20, 60, 120], "thumbnail": THUMBNAIL}
DOG = {"class": "dog", "box": [0.5, 0, 100, 200], "thumbnail": THUMBNAIL}
PHOTOS = [
    {"image_id": k, "width": 100, "height": 200, "objects": things} for k, things in ((5, [CAT, DOG]), (6, [DOG]))
]
QUESTIONS = [
    {"question_id": 1, "image_id": 5, "split": "train", "type": "number", "question": "how many cats", "answer": "two"},
    {"question_id": 2, "image_id": 5, "split": "train", "type": "colour", "question": "what color", "answer": "red"},
    {"question_id": 3, "image_id": 6, "split": "test", "type": "object", "question": "what sits", "answer": "dog"},
]


def write(folder, photos=PHOTOS, questions=QUESTIONS):
    for name, entries in (("objects", photos), ("questions", questions)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return folder


def test_in_the_formats_of_vqa(tmp_path):
    assert convert(write(tmp_path), tmp_path / "out") == {"train": 2, "val": 1}
    with h5py.File(tmp_path / "out" / "train.hdf5") as file:
        features, boxes = file["image_features"][:], file["image_bb"][:]
    assert features.shape == (2, 2 + 4 + 48)
    assert features[:, :2].tolist() == [[1, 0], [0, 1]]
    np.testing.assert_allclose(features[0, 2:6], [0.1, 0.1, 0.6, 0.6], rtol=1e-6)
    np.testing.assert_allclose(features[0, 6:], np.arange(48) / 255 - 0.5, rtol=1e-5)
    assert boxes.tolist() == [CAT["box"], DOG["box"]]
    train, val, lexicon = load(tmp_path / "out", width=54, length=14, least=1)
    assert set(lexicon.answers) == {"2", "red"}
    assert train.kinds == ("number", "colour")
    assert train.types.tolist() == [1, 2]
    assert val.source.take(val.images).mask.sum().item() == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p, q: p.pop(), r"objects.jsonl has no image 6, which a question is about"),
        (lambda p, q: p[0].update(objects=[]), r"objects.jsonl: image 5 has no objects: an empty set"),
        (lambda p, q: p[1].update(width="wide"), r"objects.jsonl, line 2: width must be int"),
        (lambda p, q: p[1].update(objects=[{"class": "cat"}]), r"line 2, an object: box must be list"),
        (lambda p, q: p[1].update(objects=[CAT | {"thumbnail": "AAAA"}]), r"objects.jsonl: image 6: cannot reshape"),
        (lambda p, q: p[1].update(objects=[CAT | {"box": [1, 2, 3]}]), r"objects.jsonl: image 6: cannot reshape"),
        (lambda p, q: q.pop(), r"questions.jsonl has no question of the split test"),
        (lambda p, q: q[1].pop("answer"), r"questions.jsonl, line 2: answer must be str"),
    ],
)
def test_bad_files(tmp_path, change, message):
    photos, questions = json.loads(json.dumps([PHOTOS, QUESTIONS]))
    change(photos, questions)
    with pytest.raises(Problem, match=message):
        convert(write(tmp_path, photos, questions), tmp_path / "out")


def test_files_that_are_none(tmp_path):
    with pytest.raises(Problem, match=r"objects.jsonl cannot be read: No such file"):
        convert(tmp_path, tmp_path / "out")
    write(tmp_path)
    (tmp_path / "objects.jsonl").write_text("{")
    with pytest.raises(Problem, match=r"objects.jsonl is not a file of JSON lines"):
        convert(tmp_path, tmp_path / "out")
