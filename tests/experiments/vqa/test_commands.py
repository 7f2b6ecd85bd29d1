"""What a person at a terminal sees, from making the data to the table."""

import json
import pickle

import pytest

from tests.experiments.vqa.conftest import write_features
from tests.experiments.vqa.test_coco import write as write_coco
from tests.experiments.vqa.test_tsv import write_tsv

TINY = "--epochs 1 --batch-size 16 --limit 32 --least 1 --device cpu"


def test_from_scenes_to_the_table(command, tmp_path):
    code, out, _ = command("data scenes --out scenes --questions 40 --held-out 20 --features 6")
    assert code == 0
    assert "40 questions to train on, 20 to test with" in out
    code, out, _ = command(f"train vqa --data scenes --model ban-po-u {TINY} --hidden 8 --glimpses 1 --run-dir run")
    assert code == 0
    assert "overall" in out
    assert json.loads((tmp_path / "run" / "config.json").read_text())["glimpses"] == 1
    code, out, _ = command("evaluate run")
    assert code == 0
    code, out, _ = command(f"reproduce vqa --data scenes --models ban,ban-lstm --seeds 2 {TINY}")
    assert code == 0
    names = {path.name for path in (tmp_path / "results").iterdir()}
    assert names == {f"vqa-scenes-{model}-seed{seed}.json" for model in ("ban", "ban-lstm") for seed in range(2)}
    code, out, _ = command("table vqa --markdown")
    assert code == 0
    assert "scenes: accuracy, %" in out
    assert "| BAN + LSTM |" in out


def test_coco_qa(command, tmp_path):
    (tmp_path / "root" / "cocoqa").mkdir(parents=True)
    write_coco(tmp_path / "root" / "cocoqa")
    code, out, _ = command("data cocoqa --out coco --data-root root")
    assert (code, out) == (0, "coco: 2 questions to train on, 1 to test with\n")
    code, out, _ = command(f"train vqa --data coco --model ban {TINY}")
    assert code == 0


def test_conversions(command, tmp_path):
    write_tsv(tmp_path / "a.tsv")
    code, out, _ = command("data features a.tsv --out all.hdf5")
    assert (code, out) == (0, "all.hdf5: 4 images\n")
    (tmp_path / "q.json").write_text('{"questions": [{"question_id": 1, "image_id": 12, "question": "what?"}]}')
    code, out, _ = command("data features a.tsv --out one.hdf5 --questions q.json")
    assert (code, out) == (0, "one.hdf5: 1 images\n")
    (tmp_path / "train_imgid2idx.pkl").write_bytes(pickle.dumps({581929: 0, 7: 1}))
    code, out, _ = command("data index train_imgid2idx.pkl")
    assert (code, out) == (0, "train_imgid2idx.json: 2 images\n")
    assert json.loads((tmp_path / "train_imgid2idx.json").read_text()) == {"581929": 0, "7": 1}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("train vqa --data nowhere", "there is no folder nowhere; `unshuffle data scenes --out nowhere` makes one"),
        ("train vqa --model best", "unknown model 'best'; there are ban, ban-lstm, ban-po-u, ban-neighbours"),
        ("train vqa --preset huge", "unknown preset 'huge'; there are paper, small"),
        ("table vqa", "holds no record of vqa; `unshuffle reproduce vqa` makes them"),
        ("data scenes --out x --questions 0", "questions must be at least 1, got 0"),
        ("data scenes --out x --noise -1", "noise must be a number of at least 0, got -1"),
        ("data cocoqa --out x", "COCO-QA is not downloaded: pass --data-root DIR"),
        ("data features nowhere.tsv --out x.hdf5", "nowhere.tsv cannot be read: No such file"),
        ("data index nowhere.pkl", "nowhere.pkl cannot be read: No such file"),
    ],
)
def test_bad_input_is_one_clear_line(command, tmp_path, line, message):
    code, _, err = command(line)
    assert code == 2
    assert err.startswith("unshuffle: ")
    assert err.count("\n") == 1
    assert message in err
    assert not list(tmp_path.iterdir())


def test_training_never_starts_on_a_broken_file(command, tmp_path, monkeypatch):
    monkeypatch.setattr("tests.experiments.vqa.conftest.WIDTH", 6)
    command("data scenes --out scenes --questions 40 --held-out 20 --features 6")
    write_features(tmp_path / "scenes" / "val.hdf5")
    code, _, err = command(f"train vqa --data scenes {TINY}")
    assert code == 2
    assert "val_questions.json: question" in err
    assert "is about image" in err
    assert not (tmp_path / "runs").exists()
