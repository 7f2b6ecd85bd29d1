"""From a finished run to weights that `us.solve` uses."""

import json

import torch

import unshuffle as us
from unshuffle import shipped
from unshuffle.experiments import evaluation
from unshuffle.experiments.pack import destination
from unshuffle.pretrained import Jigsaw

TRAIN = "train mosaic --dataset cifar10 --side 2 --epochs 1 --limit 8 --batch-size 8 --device cpu --run-dir run"


def test_a_run_is_packed(command, hub, tmp_path):
    assert command(f"{TRAIN} --model neighbours --data-root {hub}")[0] == 0
    code, out, _ = command(f"pack run packed/mine --data-root {hub}")
    assert code == 0
    assert "packed/mine: 3.8 MB of weights" in out
    config = json.loads((tmp_path / "packed" / "mine" / "config.json").read_text())
    assert (config["rows"], config["cols"], config["tile"]) == (2, 2, 16)
    packed = Jigsaw.from_pretrained(tmp_path / "packed" / "mine")
    assert {value.dtype for value in packed.state_dict().values()} == {torch.float32}
    task, model = evaluation.load(tmp_path / "run", "cpu", hub)
    for name, value in model.state_dict().items():
        assert torch.equal(packed.assembler.state_dict()[name], value.half().float())
    # It sees what the run saw: the same normalisation, and the same numbers up to float16
    batch = task.batch(0, 0, 8, slice(None))
    pixels = (batch.tiles * task.std[:, None, None] + task.mean[:, None, None]).mul(255).round().to(torch.uint8)
    with torch.no_grad():
        ours, theirs = packed(pixels), model.eval()(batch.tiles)
    torch.testing.assert_close(ours.costs, theirs.costs, atol=2e-2, rtol=0)
    assert us.solve(torch.randint(256, (32, 32, 3), dtype=torch.uint8), 2, 2, model=packed).order.shape == (4,)


def test_only_neighbours_are_packed(command, hub):
    assert command(f"{TRAIN} --model po-u --data-root {hub}")[0] == 0
    code, _, err = command(f"pack run packed --data-root {hub}")
    assert code == 2
    assert "only the mosaic task's neighbours model is packed" in err
    code, _, err = command("pack nothing packed")
    assert code == 2
    assert err.count("\n") == 1


def test_a_plain_name_goes_into_the_package(tmp_path):
    assert destination("natural-4x4") == shipped.WEIGHTS / "natural-4x4"
    assert destination(str(tmp_path / "mine")) == tmp_path / "mine"
