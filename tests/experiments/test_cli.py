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
        ("train classifier --help", ["--dataset", "--size", "--epochs", "--limit", "--precision", "--resume"]),
        ("train classify --help", ["--side", "--images", "--schedule", "--clip", "--test-steps", "--classifiers"]),
        ("reproduce classify --help", ["--datasets", "--sides", "--models", "--images", "--limit", "--precision"]),
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
    "train classify --model best": "unknown model 'best'; there are max, min, lin-assign",
    "train classify --schedule x": "unknown schedule 'x'; there are constant, one-cycle",
    "train classify --images 0": "images must be at least 1, got 0",
    "train classifier --size 4": "size must be at least 8, got 4",
    "reproduce classify --models best": "unknown model 'best'",
    "table classify": "holds no record of classify; `unshuffle reproduce classify` makes them",
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


def test_classify_says_which_command_to_run_first(command, tmp_path, hub):
    code, _, err = command(f"train classify --side 3 --data-root {hub} --device cpu")
    assert code == 2
    first = "unshuffle train classifier --dataset mnist --size 30"
    assert err.startswith("unshuffle: runs holds no classifier of mnist at 30×30 pixels; run this first: " + first)
    assert err.count("\n") == 1
    assert not list(tmp_path.iterdir())


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


VOTES = "winner,loser,count\ntea,[red]coffee,3\n[red]coffee,water,2\nwater,tea,1\n"


def test_order_ranks_a_file(command, tmp_path):
    (tmp_path / "votes.csv").write_text(VOTES)
    code, out, err = command("order votes.csv --out new/ranking.csv --seed 3")
    assert (code, err) == (0, "")
    places = [line.split()[1:6:2] for line in out.splitlines() if line.startswith("│")]
    assert places == [["1", "tea", "75.0%"], ["2", "[red]coffee", "40.0%"], ["3", "water", "33.3%"]]
    assert "1 of 3 comparisons contradict the ranking: 1 of 6 in weight, 16.7%." in out
    rows = (tmp_path / "new" / "ranking.csv").read_text().splitlines()
    assert rows[:2] == ["place,name,score,won,lost", "1,tea,0.7500,3,1"]
    assert not list((tmp_path / "new").glob(".*"))
    code, out, _ = command("order --help")
    assert code == 0
    assert "tea,coffee,3" in out


BAD_ORDERS = {
    "order nowhere.csv": "cannot read nowhere.csv: No such file",
    "order .": "cannot read .: Is a directory",
    "order bad.csv": "bad.csv, line 2: 'tea' is compared with itself",
    "order votes.csv --out votes.csv": "would overwrite the comparisons",
    "order votes.csv --out votes.csv/x": "File exists",
    "order votes.csv --seconds 0": "Invalid value for '--seconds'",
    "order votes.csv --seconds nan": "Invalid value for '--seconds'",
    "order votes.csv --seed -1": "Invalid value for '--seed'",
    "order": "Missing argument",
}


@pytest.mark.parametrize("line", BAD_ORDERS)
def test_order_of_bad_input(command, tmp_path, line):
    (tmp_path / "votes.csv").write_text(VOTES)
    (tmp_path / "bad.csv").write_text("tea,coffee\ntea,tea\n")
    code, _, err = command(line)
    assert code == 2
    assert err.startswith("unshuffle: ")
    assert err.count("\n") == 1
    assert BAD_ORDERS[line] in err
    assert (tmp_path / "votes.csv").read_text() == VOTES
    assert len(list(tmp_path.iterdir())) == 2
