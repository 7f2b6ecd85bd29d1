"""What a person at a terminal sees."""

import json

import pytest

from unshuffle import __version__


@pytest.fixture(autouse=True)
def _few_sizes(monkeypatch):
    monkeypatch.setattr("unshuffle.experiments.sorting.SIZES", (4, 6))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", ["train", "evaluate", "reproduce", "table"]),
        ("--help", ["Train", "records"]),
        ("train", ["sorting", "mosaic"]),
        ("train sorting --help", ["--size", "--model", "--epochs", "--batch-size", "--lr", "--steps", "--seed"]),
        ("train mosaic -h", ["--dataset", "--side", "--limit", "--run-dir", "--resume", "--compile", "--precision"]),
        ("reproduce mosaic --help", ["--datasets", "--sides", "--models", "--epochs"]),
        ("table mosaic --help", ["--markdown"]),
        ("--version", [__version__]),
    ],
)
def test_help(command, line, words):
    code, out, err = command(line)
    assert code == 0
    assert not err
    for word in words:
        assert word in out


def test_from_training_to_table(command, tmp_path):
    code, out, _ = command("train sorting --size 4 --limit 64 --batch-size 32 --device cpu")
    assert code == 0
    assert "sorted 0-1" in out
    run = tmp_path / "runs" / "sorting-4-po-u"
    assert json.loads((run / "config.json").read_text())["size"] == 4
    code, out, _ = command(f"evaluate {run} --update")
    assert code == 0
    assert "other_sizes 6" in out
    code, out, _ = command("reproduce sorting --sizes 4 --epochs 1 --results results --runs elsewhere --device cpu")
    assert code == 0
    code, out, _ = command("table sorting --markdown")
    assert code == 0
    assert "| PO-U | 4 |" in out
    code, out, _ = command("table sorting")
    assert "PO-U" in out


def test_mosaic_from_a_folder_of_datasets(command, tmp_path, hub):
    line = f"train mosaic --side 2 --model po-u --limit 32 --epochs 1 --data-root {hub} --run-dir run --device cpu"
    code, out, _ = command(line)
    assert code == 0
    assert "pixel_exact" in out
    assert (tmp_path / "run" / "model.safetensors").exists()
    code, _, err = command(line)
    assert (code, err) == (2, "unshuffle: run already holds this run; pass --resume to go on with it\n")
    code, out, _ = command(f"{line} --resume")
    assert code == 0


BAD = {
    "train sorting --model best": "unknown model 'best'; there are lin-assign, po-u, po-la, neighbours",
    "train sorting --size 0": "size must be at least 1, got 0",
    "train sorting --size many": "Invalid value for '--size': Input should be a valid integer",
    "train sorting --lr 0": "lr must be above 0",
    "train sorting --steps -1": "steps must be at least 0, got -1",
    "train sorting --precision fp8": "unknown precision 'fp8'; there are float32, bf16",
    "train sorting --device gpu9": "device 'gpu9' cannot be used here",
    "train sorting --colour red": "No such option: --colour",
    "train chess": "No such command 'chess'",
    "train mosaic --dataset mnits": "unknown dataset 'mnits': pass one of",
    "train mosaic --data-root nowhere": "there is no folder nowhere",
    "train mosaic --data-root .": "pass --data-root DIR, or set UNSHUFFLE_DATA",
    "train mosaic --side 1": "side must be at least 2, got 1",
    "evaluate nowhere": "is not the config of a run: No such file",
    "table mosaic": "holds no record of mosaic; `unshuffle reproduce mosaic` makes them",
    "reproduce sorting --sizes 5,x": "--sizes takes whole numbers separated by commas",
    "reproduce sorting --models best": "unknown model 'best'",
}


@pytest.mark.parametrize("line", BAD)
def test_bad_input_is_one_clear_line(command, tmp_path, line):
    code, _, err = command(line)
    assert code == 2
    assert err.startswith("unshuffle: ")
    assert err.count("\n") == 1
    assert BAD[line] in err
    assert not list(tmp_path.iterdir())  # nothing was begun


def test_a_run_directory_of_another_task(command, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.json").write_text('{"experiment": "chess", "size": 4}')
    code, _, err = command("train sorting --run-dir run --resume --device cpu")
    assert code == 2
    assert "belongs to another run, which differs in" in err
    assert "experiment" in err
    code, _, err = command("evaluate run")
    assert code == 2
    assert "unknown experiment 'chess'" in err


def test_a_folder_that_may_not_be_written(command, tmp_path):
    (tmp_path / "runs").write_text("a file where a folder should be")
    code, _, err = command("train sorting --size 4 --limit 64 --device cpu")
    assert code == 2
    assert err.count("\n") == 1
