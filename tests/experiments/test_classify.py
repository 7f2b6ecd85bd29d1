import io
import json

import pytest
import torch
from rich.console import Console
from safetensors.torch import save_file

import unshuffle as us
from unshuffle import tiles
from unshuffle.experiments import classifier, classify, evaluation, pretrained, puzzles, records, training
from unshuffle.experiments.classify import ClassifyTask, settings
from unshuffle.experiments.problem import Problem
from unshuffle.experiments.records import Record
from unshuffle.experiments.reproduce import reproduce
from unshuffle.experiments.training import Run, RunDir, Running, accelerator_for

CPU = torch.device("cpu")
QUIET = Console(quiet=True)
LIGHT = {"side": 2, "channels": 2, "hidden": 4, "pair_hidden": (4, 3), "batch_size": 4, "images": 12, "epochs": 2}


def write_classifier(folder, config, classes=10, channels=1):
    """A finished run of the classifier, as training leaves it; its weights are random."""
    torch.manual_seed(1)
    files, network = RunDir(folder / config.cell), classifier.network(classes, channels, config.size)
    files.path.mkdir(parents=True)
    files.config.write_text(json.dumps(training.describe("classifier", config)))
    save_file({name: value.contiguous() for name, value in network.state_dict().items()}, files.model)
    Record("classifier", training.as_json(config), {"accuracy": 0.1, "images": 24}, 96, 1.0, {}).write(files.record)
    return network


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Runs of a classifier for sides 2 and 4 of MNIST, and for side 3 of CIFAR-10."""
    folder = tmp_path_factory.mktemp("classifiers")
    write_classifier(folder, classifier.settings(dataset="mnist", size=28))
    write_classifier(folder, classifier.settings(dataset="cifar10", size=33), channels=3)
    return folder


def task(hub, folder, **chosen):
    return ClassifyTask(settings(**({"classifiers": str(folder), "limit": 12} | LIGHT | chosen)), CPU, hub)


def train(hub, folder, run_dir, *, resume=False, **chosen):
    running = Running(run_dir, device="cpu", resume=resume)
    return training.train(task(hub, folder, **chosen), running, accelerator_for(running), QUIET)


def test_defaults_are_the_papers():
    config = settings(model="po-u")
    assert (config.steps, config.hidden, config.lr, config.batch_size, config.clip) == (4, 64, 1e-3, 32, None)
    assert config.schedule == "constant"
    assert settings(model="neighbours").steps == 8
    assert settings(model="neighbours", clip=None).clip is None
    budgets = {(c.images, c.epochs, c.batch_size) for c in (settings(model=name) for name in classify.TITLES)}
    assert budgets == {(20_000, 3, 32)}  # the same for every model


def test_which_classifier_a_side_needs():
    sizes = {("mnist", 2): 28, ("mnist", 3): 30, ("mnist", 4): 28, ("mnist", 5): 30}
    sizes |= {("cifar10", 2): 32, ("cifar10", 3): 33, ("tiny-imagenet", 5): 65}
    for (dataset, side), size in sizes.items():
        assert classify.needs(settings(dataset=dataset, side=side)) == [
            ("classifier", classifier.settings(dataset=dataset, size=size))
        ]


@pytest.mark.parametrize("model", ["lin-assign", "po-u", "po-la", "neighbours"])
def test_only_the_permutation_is_trained(hub, folder, tmp_path, model):
    t = task(hub, folder, model=model)
    frozen = {name: value.clone() for name, value in t.classifier.state_dict().items()}
    running = Running(tmp_path / "run", device="cpu")
    run = Run(t, running, accelerator_for(running), RunDir(tmp_path / "run"))
    before = {name: value.clone() for name, value in run.model.state_dict().items()}
    run.make_step()
    assert all(name.startswith("assembler.") for name in before)
    assert any(not torch.equal(before[name], value) for name, value in run.model.state_dict().items())
    trained = {id(p) for group in run.optimiser.param_groups for p in group["params"]}
    assert trained <= {id(p) for p in run.model.assembler.parameters()}
    assert all(p.grad is not None for p in run.model.parameters() if p.requires_grad)
    assert all(p.grad is None and not p.requires_grad for p in t.classifier.parameters())
    assert not t.classifier.training
    for name, value in t.classifier.state_dict().items():  # batch-norm statistics too
        assert torch.equal(value, frozen[name]), name


def test_the_loss_is_the_cross_entropy_of_the_joined_image(hub, folder):
    t = task(hub, folder, dataset="cifar10", side=3, model="po-la")
    model, batch = t.build(), t.batch(0, 0, 4, slice(None))
    soft, total = model.assembler(batch.tiles).soft, 0.0
    for b in range(4):
        image = torch.zeros(3, 33, 33)
        for i in range(9):
            for k in range(9):
                row, col = 11 * (k // 3), 11 * (k % 3)
                image[:, row : row + 11, col : col + 11] += soft[b, i, k] * batch.tiles[b, i]
        total -= t.classifier(image[None]).log_softmax(-1)[0, batch.labels[b]] / 4
    torch.testing.assert_close(t.loss(model, batch), total, atol=1e-4, rtol=1e-4)


def test_an_epoch_draws_from_all_images(hub, folder):
    t = task(hub, folder, limit=None, images=12, epochs=8)
    seen = torch.cat([t.drawn(epoch, 0, 12, slice(None)) for epoch in range(8)])
    assert t.items == 12
    assert len(seen) == 96
    assert 50 < len(set(seen.tolist())) <= 96  # out of 96, and not the same 12 each time
    many = puzzles.Drawn(0, 5, 12)(0, 0, 12, slice(None))
    assert sorted(many[:5].tolist()) == sorted(many[5:10].tolist()) == [0, 1, 2, 3, 4]
    assert task(hub, folder, limit=5, images=12).items == 5
    labels = t.batch(1, 4, 4, slice(None)).labels
    assert torch.equal(labels, t.labels[t.drawn(1, 4, 4, slice(None))])


def test_bounds_need_no_training(hub, folder, tmp_path):
    best = train(hub, folder, tmp_path / "max", model="max", limit=None)
    worst = train(hub, folder, tmp_path / "min", model="min", limit=None)
    t = task(hub, folder, limit=None)
    images = tiles.normalised(t.test, t.mean, t.std)
    expected = (t.classifier(images).argmax(-1) == t.test_labels).double().mean().item()
    assert best.metrics == {"accuracy": pytest.approx(expected), "mse": 0.0, "images": 24}
    assert best.images_seen == worst.images_seen == 0
    shuffled = next(iter(t.tested(t.test, puzzles.generator("test", 2)))).tiles
    assert worst.metrics["mse"] == pytest.approx((tiles.join(shuffled, 2, 2) - images).square().mean().item(), rel=1e-4)
    assert worst.metrics["mse"] > 0.1
    assert evaluation.evaluate(tmp_path / "min", "cpu", hub) == worst.metrics
    assert train(hub, folder, tmp_path / "max", model="max", limit=None, resume=True) == best


def test_resumed_equals_undisturbed(hub, folder, tmp_path, kill_at):
    record = train(hub, folder, tmp_path / "whole", model="neighbours")
    assert record.images_seen == 24
    assert set(record.metrics) == {"accuracy", "mse", "images"}
    assert RunDir(tmp_path / "whole").model.stat().st_size < 200_000  # without the classifier
    kill_at(4, lambda: train(hub, folder, tmp_path / "killed", model="neighbours"))
    again = train(hub, folder, tmp_path / "killed", model="neighbours", resume=True)
    one, other = (RunDir(tmp_path / name).model.read_bytes() for name in ("whole", "killed"))
    assert one == other
    assert again.metrics == record.metrics == evaluation.evaluate(tmp_path / "whole", "cpu", hub)


def test_bf16_reaches_the_classifier_in_training_only(hub, folder, tmp_path):
    t = task(hub, folder, model="po-u")
    running = Running(tmp_path / "run", device="cpu", precision="bf16")
    run, seen = Run(t, running, accelerator_for(running), RunDir(tmp_path / "run")), []
    t.classifier.layer2.register_forward_hook(lambda module, inputs, output: seen.append(output.dtype))
    run.make_step()
    run.watch()
    assert seen == [torch.bfloat16, torch.float32]


def test_more_steps_in_evaluation(hub, folder):
    t, longer = (task(hub, folder, model="po-la", test_steps=steps) for steps in (None, 6))
    torch.manual_seed(0)
    model = t.build()
    more = longer.build()
    more.load_state_dict(model.state_dict())
    batch = t.batch(0, 0, 4, slice(None))
    assert torch.equal(model.soft(batch), model.assembler(batch.tiles).soft)
    six = us.descend(
        model.assembler(batch.tiles).costs, us.Grid(2, 2), steps=6, start=model.assembler(batch.tiles).descent.start
    )
    torch.testing.assert_close(more.soft(batch), six)
    assert not torch.allclose(more.soft(batch), model.soft(batch))


def test_a_classifier_that_does_not_do(hub, tmp_path):
    command = f"unshuffle train classifier --dataset mnist --size 28 --run-dir {tmp_path}/classifier-mnist-28"
    mine = classifier.settings(dataset="mnist", size=28)

    def says(*words):
        with pytest.raises(Problem) as caught:
            task(hub, tmp_path)
        for word in (*words, command):
            assert word in str(caught.value)

    says("holds no classifier of mnist at 28×28 pixels; run this first")
    write_classifier(tmp_path, mine, classes=7)
    says("knows 7 classes, mnist has 10; move it away")
    files = pretrained.run_of(tmp_path, "mnist", 28)
    for name, value in (("dataset", "cifar10"), ("size", 30), ("experiment", "mosaic")):
        files.config.write_text(json.dumps(training.describe("classifier", mine) | {name: value}))
        says("holds another run", str(value), "move it away")
    files.config.write_text(json.dumps(training.describe("classifier", mine)))
    files.record.unlink()
    says("is not finished; run this first", "--resume")


def test_reproduce_says_with_what_else_a_classifier_was_trained(hub, tmp_path):
    write_classifier(tmp_path / "runs", classifier.settings(dataset="mnist", size=28, epochs=9))
    console = Console(file=io.StringIO(), width=300)
    config = settings(model="max", limit=4, classifiers=str(tmp_path / "runs"), **LIGHT)
    reproduce("classify", [config], tmp_path / "results", Running(tmp_path / "runs", device="cpu"), hub, console)
    assert "classifier-mnist-28: trained in" in console.file.getvalue()
    assert "with another choice of epochs, limit; remove it to train again" in console.file.getvalue()
    assert records.read(tmp_path / "results" / "classifier-mnist-28.json").config["epochs"] == 9


def test_reproduce_trains_what_is_missing(hub, tmp_path, monkeypatch):
    begun = []

    def instead(task, running, accelerator, console):
        begun.append(running.run_dir.name)
        if isinstance(task, classifier.ClassifierTask):
            write_classifier(running.run_dir.parent, task.config)
            return records.read(RunDir(running.run_dir).record)
        return training.train(task, running, accelerator, console)

    monkeypatch.setattr("unshuffle.experiments.reproduce.train", instead)
    configs = [settings(model=m, limit=4, classifiers=str(tmp_path / "runs"), **LIGHT) for m in ("max", "po-u")]
    for _ in range(2):
        reproduce("classify", configs, tmp_path / "results", Running(tmp_path / "runs", device="cpu"), hub, QUIET)
    assert begun == ["classifier-mnist-28", "classify-mnist-2-max", "classify-mnist-2-po-u"]
    names = {path.stem for path in (tmp_path / "results").iterdir()}
    assert names == {"classifier-mnist-28", "classify-mnist-2-max", "classify-mnist-2-po-u"}
    assert records.read(tmp_path / "results" / "classify-mnist-2-po-u.json").images_seen == 8  # 4 an epoch
    assert len(records.read_all(tmp_path / "results", "classify")) == 2  # the classifier's is not one of them


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"model": "best"}, "unknown model 'best'; there are max, min, lin-assign, po-u, po-la, neighbours"),
        ({"schedule": "random"}, "unknown schedule 'random'; there are constant, one-cycle"),
        ({"images": 0}, "images must be at least 1, got 0"),
        ({"test_steps": 0}, "test_steps must be at least 1, got 0"),
        ({"side": 1}, "side must be at least 2, got 1"),
        ({"lr": -1.0}, "lr must be above 0"),
    ],
)
def test_bad_settings(chosen, message):
    with pytest.raises((Problem, ValueError), match=message):
        settings(**chosen)
