"""`unshuffle solve`, as a person at a terminal sees it."""

import pytest
import torch
from matplotlib.cbook import get_sample_data
from PIL import Image

from unshuffle import cli


@pytest.fixture
def command(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def call(line):
        monkeypatch.setattr("sys.argv", ["unshuffle", *line.split()])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        captured = capsys.readouterr()
        return stop.value.code, captured.out, captured.err

    return call


@pytest.fixture
def photo(tmp_path):
    with get_sample_data("grace_hopper.jpg") as file:
        picture = Image.open(file).convert("RGB").resize((256, 300))
    picture.save(tmp_path / "photo.png")
    return picture


def test_one_picture(command, photo, tmp_path):
    code, out, err = command("solve photo.png --rows 2 --scramble 4 --steps-gif steps.gif")
    assert (code, err) == (0, "")
    for word in ("order", "certainty", "%", "time", "yes: it came back to the pixel", "photo-solved.png", "steps.gif"):
        assert word in out
    assert Image.open(tmp_path / "photo-solved.png").tobytes() == photo.tobytes()
    with Image.open(tmp_path / "steps.gif") as gif:
        assert gif.n_frames > 3
        assert abs(gif.width / gif.height - 256 / 300) < 0.02


def test_a_picture_that_came_scrambled(command, photo, tmp_path):
    from unshuffle.solver import scramble

    scramble(photo, 2, 2, 1)[0].save(tmp_path / "puzzle.png")
    code, out, _ = command("solve puzzle.png --rows 2 --out put/together.tif")
    assert code == 0
    assert "exact" not in out
    assert Image.open(tmp_path / "put" / "together.tif").tobytes() == photo.tobytes()


def test_a_folder(command, photo, tmp_path):
    (tmp_path / "in").mkdir()
    photo.save(tmp_path / "in" / "a.png")
    photo.convert("CMYK").save(tmp_path / "in" / "b.jpg", quality=95)
    code, out, err = command("solve in --rows 2 --scramble 1 --out out")
    assert (code, err) == (0, "")
    assert "2 of 2 came back to the pixel" in out
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"a-solved.png", "b-solved.tif"}
    assert Image.open(tmp_path / "out" / "b-solved.tif").mode == "CMYK"


def test_the_others_are_solved_all_the_same(command, photo, tmp_path):
    (tmp_path / "broken.png").write_bytes((tmp_path / "photo.png").read_bytes()[:3000])
    code, _, err = command("solve broken.png photo.png --rows 2")
    assert code == 2
    assert err.count("\n") == 1
    assert "1 of 2 pictures could not be solved; broken.png: broken.png is damaged" in err
    assert (tmp_path / "photo-solved.png").exists()
    assert not (tmp_path / "broken-solved.png").exists()


def test_weights_of_ones_own(command, photo, tmp_path):
    import unshuffle as us

    us.load("natural-2x2").save_pretrained(tmp_path / "mine")
    assert command("solve photo.png --rows 2 --model mine")[0] == 0
    code, _, err = command("solve photo.png --rows 3 --model mine")
    assert code == 2
    assert "not 3 rows and 3 columns" in err
    (tmp_path / "mine" / "model.safetensors").write_bytes(b"no weights")
    code, _, err = command("solve photo.png --rows 2 --model mine")
    assert code == 2
    assert "mine cannot be read" in err


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("solve", "Missing argument"),
        ("solve missing.png", "there is no file missing.png"),
        ("solve notes.txt", "notes.txt is no picture"),
        ("solve empty", "empty is a folder without pictures"),
        ("solve photo.png --rows 6", "no weights for a grid of 6×6; there are some for 2×2, 3×3"),
        ("solve photo.png --rows 2 --cols 5", "no weights for a grid of 2×5"),
        ("solve photo.png --rows 0", "rows must be at least 1"),
        ("solve photo.png --seconds 0", "seconds must be above 0"),
        ("solve tiny.png --rows 3", "2×2 pixels, too few for 3 rows"),
        ("solve photo.png --out photo.png", "photo.png is a picture that was given, and is not overwritten"),
        ("solve photo.png --rows 2 --out notes.txt/x.png", "notes.txt"),
        ("solve photo.png --out solved.txt", "cannot write pictures as .txt"),
        ("solve clear.png --rows 2 --out solved.jpg", "mode RGBA cannot be written as JPEG"),
        ("solve photo.png tiny.png --out notes.txt", "notes.txt is a file; 2 pictures need a folder"),
        ("solve photo.png tiny.png --steps-gif a.gif", "--steps-gif draws one picture, and there are 2"),
        ("solve photo.png --steps-gif a.png", "must end in .gif"),
        ("solve photo.png --model empty", "empty holds no config.json"),
    ],
)
def test_one_line_says_what_is_wrong(command, photo, tmp_path, line, words):
    (tmp_path / "notes.txt").write_text("no picture")
    (tmp_path / "empty").mkdir()
    Image.new("RGB", (2, 2)).save(tmp_path / "tiny.png")
    Image.fromarray(torch.randint(256, (20, 20, 4), dtype=torch.uint8).numpy()).save(tmp_path / "clear.png")
    before = (tmp_path / "photo.png").read_bytes()
    code, _, err = command(line)
    assert code == 2
    assert err.startswith("unshuffle: ")
    assert err.count("\n") == 1
    assert words in err
    assert (tmp_path / "photo.png").read_bytes() == before
    assert not list(tmp_path.rglob("*.part"))
