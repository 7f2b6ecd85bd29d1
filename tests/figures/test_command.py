"""`unshuffle figure`: every kind as PNG and PDF, and what it says of bad input."""

import io

import pytest
import torch
from PIL import Image

from unshuffle import cli
from unshuffle.commands.figure import NAME
from unshuffle.figures.registry import FIGURES

OF = {
    "comparison": ["sorting"],
    "costs": ["neighbours"],
    "sensitivity": ["po-u", "neighbours"],
    "gradients": ["po-u"],
    "steps": ["po-u"],
    "step-size": ["sorting", "neighbours"],
    "curves": ["po-u", "neighbours", "lin-assign"],
}


@pytest.fixture
def command(monkeypatch, capsys, tmp_path, runs, hub):
    """Run `unshuffle figure` where the runs are; exit code, stdout, stderr."""
    monkeypatch.chdir(runs)
    monkeypatch.setenv("UNSHUFFLE_DATA", str(hub))
    monkeypatch.setenv("COLUMNS", "160")

    def call(*arguments):
        monkeypatch.setattr("sys.argv", ["unshuffle", "figure", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        captured = capsys.readouterr()
        return stop.value.code, captured.out, captured.err

    return call


def test_every_kind_is_tested_and_named_in_the_help():
    assert set(OF) == set(FIGURES)
    assert all(name in NAME for name in FIGURES)


@pytest.mark.parametrize("name", OF)
def test_writes_png_and_pdf(command, tmp_path, name):
    png, pdf = tmp_path / "new" / "figure.png", tmp_path / "figure.PDF"
    assert command(name, *OF[name], "--out", png) == (0, f"{png}\n", "")
    image = Image.open(io.BytesIO(png.read_bytes())).convert("L")
    assert min(image.size) > 300
    middle = image.crop([side // 4 for side in image.size] + [3 * side // 4 for side in image.size])
    assert len(middle.getcolors()) > 5  # not blank, beyond its frame
    assert command(name, *OF[name], "--out", pdf)[0] == 0
    assert pdf.read_bytes().startswith(b"%PDF")
    assert not list(tmp_path.rglob("*.part"))


def test_the_same_picture_is_the_same_file(command, tmp_path):
    for out in ("a.pdf", "b.pdf"):
        command("steps", "po-u", "--out", tmp_path / out)
    assert (tmp_path / "a.pdf").read_bytes() == (tmp_path / "b.pdf").read_bytes()


def test_another_image_is_another_picture(command, tmp_path):
    for image in (0, 5):
        assert command("costs", "po-u", "--image", image, "--out", tmp_path / f"{image}.png")[0] == 0
    assert (tmp_path / "0.png").read_bytes() != (tmp_path / "5.png").read_bytes()


BAD = {
    (
        "violin",
        "po-u",
        "--out",
        "a.png",
    ): "unknown figure 'violin'; there are comparison, costs, sensitivity, gradients",
    ("comparison", "po-u", "--out", "a.png"): "po-u is a run of mosaic; the figure comparison takes one of sorting",
    ("steps", "sorting", "--out", "a.png"): "sorting is a run of sorting; the figure steps takes one of mosaic",
    ("costs", "lin-assign", "--out", "a.png"): "takes no steps, so that it never learned costs",
    ("sensitivity", "lin-assign", "--out", "a.png"): "takes no steps, so that it never learned costs",
    ("step-size", "lin-assign", "--out", "a.png"): "never moved its step size from 1",
    (
        "costs",
        "po-u",
        "--out",
        "a.jpg",
    ): "cannot tell a format from the name 'a.jpg': a figure is written as .png or .pdf",
    ("costs", "po-u", "--out", "a"): "a figure is written as .png or .pdf",
    ("costs", "po-u", "po-la", "--out", "a.png"): "the figure costs is of one run, got 2",
    (
        "costs",
        "po-u",
        "--image",
        "24",
        "--out",
        "a.png",
    ): "there is no image 24: the test images of this run are 0 to 23",
    ("steps", "po-u", "--image", "-1", "--out", "a.png"): "there is no image -1",
    ("curves", "po-u", "--image", "3", "--out", "a.png"): "the figure curves is not of one image; leave --image out",
    ("costs", "nowhere", "--out", "a.png"): "is not the config of a run: No such file",
    ("costs", "po-u", "--out", "po-u/config.json/a.png"): "config.json/a.png: po-u/config.json is a file, not a folder",
    ("costs", "po-u"): "Missing option '--out'",
    ("costs", "--out", "a.png"): "Missing argument 'RUN_DIR...'",
}


@pytest.mark.parametrize("arguments", BAD)
def test_bad_input_is_one_clear_line(command, runs, arguments):
    code, out, err = command(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("unshuffle: ")
    assert err.count("\n") == 1
    assert BAD[arguments] in err
    assert not list(runs.glob("a.*"))


def test_a_run_that_is_not_finished(command, runs, tmp_path):
    """Its history can be drawn once an epoch is over; its model is not there yet."""
    run = tmp_path / "run"
    run.mkdir()
    (run / "config.json").write_bytes((runs / "po-u" / "config.json").read_bytes())
    lines = (runs / "po-u" / "metrics.jsonl").read_text().splitlines(keepends=True)
    code, _, err = command("curves", run, "--out", tmp_path / "a.png")
    assert code == 2
    assert "is not the metrics of a run: [Errno 2] No such file" in err
    (run / "metrics.jsonl").write_text(lines[0])
    code, _, err = command("curves", run, "--out", tmp_path / "a.png")
    assert code == 2
    assert "has not come to the end of an epoch" in err
    (run / "metrics.jsonl").write_text("".join(lines[:3]) + '{"step": 4, "lo')  # half a line
    assert command("curves", run, "--out", tmp_path / "a.png")[0] == 0
    code, _, err = command("costs", run, "--out", tmp_path / "a.png")
    assert code == 2
    assert "holds no finished run" in err


def test_captions_say_which_run(view):
    assert view("po-u").caption.startswith(
        "mosaic-mnist-2-po-u, seed 0, 2 epochs, 32 examples of each split, unshuffle "
    )


def test_an_image_is_always_shuffled_in_the_same_way(view):
    run = view("po-la")
    many, one = run.shuffled(0, 5), run.shuffled(3, 1)
    assert torch.equal(many.inputs[3], one.inputs[0])
    assert torch.equal(many.pixels[3], one.pixels[0])
    assert not torch.equal(many.positions[3], many.positions[2])
    task = run.trained[0]
    shown = many.pixels - task.mean[:, None, None]
    torch.testing.assert_close(shown / task.std[:, None, None], many.inputs, atol=1e-4, rtol=0)
