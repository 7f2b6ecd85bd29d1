import pickle

import pytest
import torch

from tests.experiments.vqa.conftest import question, write_features
from unshuffle.experiments.problem import Problem
from unshuffle.experiments.vqa.dataset import PADDING, UNKNOWN, load
from unshuffle.experiments.vqa.questions import write_split


def load_small(folder, **chosen):
    return load(folder, **({"width": None, "length": 8, "least": 1} | chosen))


def test_every_question_is_a_row(folder):
    train, val, lexicon = load_small(folder)
    assert set(lexicon.answers) == {"2", "yes", "dark red"}
    assert train.types.tolist() == [1, 0, 2]
    assert train.kinds == ("how many",) * 3
    assert train.tokens.shape == (3, 8)
    named = {number: word for word, number in lexicon.words.items()}
    assert [named[k] for k in train.tokens[1].tolist() if k] == ["is", "it", "tom", "'s", "cat", "a", "red", "one"]
    assert train.tokens[0, 3:].tolist() == [PADDING] * 5
    two, red = lexicon.answers["2"], lexicon.answers["dark red"]
    assert train.answers[0].tolist() == [two] * 9 + [-1]
    assert val.judged[2].tolist() == [-1] * 2 + [red] * 8
    assert train.source.take(train.images).mask.sum(1).tolist() == [1, 2, 4]


def test_words_that_training_has_not_seen(folder):
    write_split(folder, "val", [question(1, text="how many dogs, please, are there in this picture?")])
    _, val, lexicon = load_small(folder)
    assert val.tokens[0].tolist() == [lexicon.words["how"], lexicon.words["many"], *[UNKNOWN] * 6]


def test_unanimous_answers_count_as_they_stand(folder):
    write_split(folder, "train", [question(1, answers=("T-shirt",) * 10, chosen="T-shirt")])
    train, _, lexicon = load_small(folder)
    assert set(lexicon.answers) == {"t shirt"}
    assert train.answers.tolist() == [[0] * 10]
    assert train.judged.tolist() == [[-1] * 10]


def test_official_names(folder):
    for split in ("train", "val"):
        (folder / f"{split}_questions.json").rename(folder / f"v2_OpenEnded_mscoco_{split}2014_questions.json")
        (folder / f"{split}_annotations.json").rename(folder / f"v2_mscoco_{split}2014_annotations.json")
    assert len(load_small(folder)[0].images) == 3


def test_an_image_without_features(folder):
    write_split(folder, "val", [question(1), question(77, image=404)])
    message = r"val_questions.json: question 77 is about image 404, which .*val_imgid2idx.json does not hold"
    with pytest.raises(Problem, match=message):
        load_small(folder)


def test_what_is_missing_is_named(folder, tmp_path):
    with pytest.raises(Problem, match=r"there is no folder nowhere; `unshuffle data scenes --out nowhere` makes one"):
        load_small(type(folder)("nowhere"))
    with pytest.raises(Problem, match=r"no answer in .*train_questions.json is given to 9 questions or more"):
        load_small(folder, least=9)
    (folder / "train36.hdf5").touch()
    with pytest.raises(Problem, match=r"must hold one file train\*.hdf5; there is train.hdf5, train36.hdf5"):
        load_small(folder)
    (folder / "train36.hdf5").unlink()
    (folder / "val_annotations.json").unlink()
    with pytest.raises(Problem, match=r"must hold one file \*val\*annotations.json; there is none"):
        load_small(folder)


def test_a_pickled_index_says_how_to_convert_it(folder):
    (folder / "val_imgid2idx.json").unlink()
    (folder / "val_imgid2idx.pkl").write_bytes(pickle.dumps({11: 0}))
    with pytest.raises(Problem, match=r"`unshuffle data index .*val_imgid2idx.pkl` makes it"):
        load_small(folder)


def test_splits_of_different_features(folder, monkeypatch):
    monkeypatch.setattr("tests.experiments.vqa.conftest.WIDTH", 6)
    write_features(folder / "val.hdf5")
    with pytest.raises(Problem, match=r"val.hdf5 has 6 features, but .*train.hdf5 has 5"):
        load_small(folder)
    with pytest.raises(Problem, match=r"train.hdf5: image_features is \(10, 5\), expected \(10, 6\)"):
        load_small(folder, width=6)


def test_types_are_tensors_of_questions(folder):
    train, _, _ = load_small(folder, length=2)
    assert train.tokens.shape == (3, 2)
    assert train.images.dtype == torch.long
