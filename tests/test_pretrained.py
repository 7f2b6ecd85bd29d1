import json
import subprocess
import sys

import pytest
import torch

import unshuffle as us
from unshuffle import shipped
from unshuffle.pretrained import Jigsaw


@pytest.fixture(scope="module")
def model():
    return us.load("natural-2x2")


def pieces(model, batch=3):
    rows, cols = model.grid.shape
    return torch.randint(256, (batch, rows * cols, 3, model.tile, model.tile), dtype=torch.uint8)


def test_ready_to_use(model):
    assert not model.training
    assert {value.dtype for value in model.state_dict().values()} == {torch.float32}
    arrangement = model(pieces(model))
    assert arrangement.order.shape == (3, 4)
    assert arrangement.soft.shape == (3, 4, 4)
    assert repr(model).startswith("Jigsaw(\n  Grid(2, 2, neighbours=True), tile=16")


def test_a_round_trip_gives_the_same_numbers(model, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    model.save_pretrained(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} >= {"config.json", "model.safetensors"}
    again = Jigsaw.from_pretrained(tmp_path)
    assert not capsys.readouterr().out
    x = pieces(model)
    assert torch.equal(again(x).soft, model(x).soft)
    assert torch.equal(again.mean, model.mean)


def test_missing_weights_are_not_passed_over(model, tmp_path):
    from safetensors.torch import load_file, save_file

    model.save_pretrained(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    weights.pop("assembler.arrange.step_size")
    save_file(weights, tmp_path / "model.safetensors")
    with pytest.raises(RuntimeError, match="step_size"):
        Jigsaw.from_pretrained(tmp_path)


def test_unknown_name():
    with pytest.raises(ValueError, match=r"no weights called 'natural-9x9'; there are natural-2x2, natural-3x3"):
        us.load("natural-9x9")


def test_wrong_pieces(model):
    with pytest.raises(ValueError, match=r"\(batch, 4, 3, 16, 16\), got a float32 tensor"):
        model(pieces(model).float())
    with pytest.raises(ValueError, match=r"got a uint8 tensor of shape \(3, 3, 3, 16, 16\)"):
        model(pieces(model)[:, :3])


def test_everything_shipped_is_small_and_loads():
    assert sum(path.stat().st_size for path in shipped.WEIGHTS.rglob("*") if path.is_file()) < 10e6
    for name in shipped.names():
        config = json.loads((shipped.WEIGHTS / name / "config.json").read_text())
        assert name == f"natural-{config['rows']}x{config['cols']}"
        assert us.load(name).grid.shape == (config["rows"], config["cols"])


def test_the_core_needs_no_extra():
    """Without the optional packages `import unshuffle` works, and what needs them says how to get them."""
    program = """
import sys
for name in ("huggingface_hub", "safetensors", "PIL"):
    sys.modules[name] = None
import unshuffle as us
for call in (lambda: us.load("natural-2x2"), lambda: us.solve("picture.png", 2, 2)):
    try:
        call()
    except ImportError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.count("pip install 'unshuffle[experiments]'") == 2


def test_the_wheel_takes_the_weights():
    import tomllib
    from pathlib import Path

    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())
    assert project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == ["unshuffle"]
    ignored = (Path(__file__).parent.parent / ".gitignore").read_text()
    assert "safetensors" not in ignored  # hatchling leaves out what git ignores
    assert (shipped.WEIGHTS / "README.md").is_file()
