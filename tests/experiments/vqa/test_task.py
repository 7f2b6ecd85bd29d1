import pytest
import torch
from rich.console import Console

from unshuffle.experiments import records, training
from unshuffle.experiments.evaluation import evaluate
from unshuffle.experiments.problem import Problem
from unshuffle.experiments.training import Run, RunDir, Running, accelerator_for
from unshuffle.experiments.vqa import task as vqa
from unshuffle.experiments.vqa.scenes import Scenes, write
from unshuffle.experiments.vqa.task import MODELS, Vqa, VqaTask, alike, settings

CPU, QUIET = torch.device("cpu"), Console(quiet=True)
SMALL = {"hidden": 8, "word_width": 8, "pair_hidden": 4, "set_hidden": 4, "batch_size": 32, "epochs": 2, "least": 1}


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data") / "scenes"
    write(folder, Scenes(160, 40, features=6))
    return folder


def config(scenes, **chosen):
    return settings(**SMALL | {"data": str(scenes)} | chosen)


def train(scenes, run_dir, *, resume=False, **chosen):
    running = Running(run_dir, device="cpu", resume=resume)
    return training.train(VqaTask(config(scenes, **chosen), CPU), running, accelerator_for(running), QUIET)


def test_defaults_are_the_papers():
    paper = settings(preset="paper")
    assert paper == Vqa()
    assert (paper.features, paper.hidden, paper.glimpses, paper.rank) == (2048, 1280, 8, 3)
    assert (paper.projected, paper.pair_hidden, paper.set_hidden, paper.steps) == (8, 128, 128, 3)
    assert (paper.lr, paper.batch_size, paper.epochs, paper.clip, paper.dropout) == (1e-3, 112, 13, 0.25, (0.2, 0.5))
    assert settings(preset="paper", hidden=5).hidden == 5
    assert settings().features is None
    assert settings(data="some/where/scenes", model="ban", seed=3).cell == "vqa-scenes-ban-seed3"


def test_learning_rate_is_bans():
    t = VqaTask.__new__(VqaTask)
    t.config = settings(preset="paper")
    rates = [t.learning_rate(epoch / 13) for epoch in range(13)]
    assert rates == pytest.approx([5e-4, 1e-3, 1.5e-3, *[2e-3] * 7, 5e-4, 5e-4, 1.25e-4])


def test_batches_are_a_function_of_seed_and_step(scenes):
    t = VqaTask(config(scenes), CPU)
    whole = t.batch(1, 32, 32, slice(None))
    halves = [VqaTask(config(scenes), CPU).batch(1, 32, 32, part) for part in (slice(0, 16), slice(16, 32))]
    assert torch.equal(whole.targets, torch.cat([half.targets for half in halves]))
    for other in (t.batch(2, 32, 32, slice(None)), VqaTask(config(scenes, seed=1), CPU).batch(1, 32, 32, slice(None))):
        assert not torch.equal(whole.targets, other.targets)


def test_an_epoch_sees_every_question_once():
    sizes = torch.randint(10, 41, (5000,))
    order = alike(sizes, 32, torch.Generator().manual_seed(0))
    assert torch.equal(order.sort().values, torch.arange(5000))
    largest = torch.stack([sizes[batch].max() for batch in order[: 156 * 32].split(32)]).float()
    assert (largest - 10).mean() < 0.7 * 30  # all batches would come to 40 otherwise
    assert abs(largest[:78].mean() - largest[78:].mean()) < 3  # small and large ones in any order
    assert torch.equal(order, alike(sizes, 32, torch.Generator().manual_seed(0)))
    assert len(alike(sizes[:20], 32, torch.Generator())) == 20


def test_targets_are_soft_scores(scenes):
    t = VqaTask(config(scenes), CPU)
    batch = t.questions(t.train, torch.arange(20))
    assert torch.isin(batch.targets, torch.tensor([0, 0.3, 0.6, 0.9, 1])).all()
    assert (batch.targets.max(1).values == 1).all()
    loss = t.loss(lambda *inputs: torch.zeros_like(batch.targets), batch)
    assert loss.item() == pytest.approx(0.6931472 * batch.targets.shape[1], rel=1e-5)


def test_evaluation_is_the_official_accuracy(scenes, monkeypatch):
    monkeypatch.setattr(vqa, "CHUNK", 7)
    t = VqaTask(config(scenes), CPU)
    chosen = [row[row >= 0].mode().values if (row >= 0).any() else torch.tensor(0) for row in t.val.judged]
    answers = iter(torch.stack(chosen).split(7))

    def oracle(features, boxes, mask, tokens):
        return torch.nn.functional.one_hot(next(answers), len(t.lexicon.answers)).float()

    metrics = t.evaluate(oracle)
    assert metrics["questions"] == 40
    assert metrics["overall"] > 0.9  # of the rare answers that no training question has, none can be given
    assert set(metrics) == {"questions", "overall", "yes/no", "number", "other", "kinds"}
    shares = t.val.types.bincount() / 40
    parts = sum(share * metrics[name] for share, name in zip(shares, vqa.TYPES, strict=True))
    assert metrics["overall"] == pytest.approx(parts.item(), abs=1e-6)


class Killed(Exception):  # noqa: N818
    pass


@pytest.mark.parametrize("model", MODELS)
def test_a_run_and_its_record(scenes, tmp_path, model):
    record = train(scenes, tmp_path / "run", model=model, epochs=1)
    assert record.images_seen == 160
    assert record.config["model"] == model
    assert evaluate(tmp_path / "run", "cpu", None) == record.metrics


def test_bf16(scenes, tmp_path):
    running = Running(tmp_path / "run", device="cpu", precision="bf16")
    t = VqaTask(config(scenes, epochs=1, limit=64), CPU)
    assert training.train(t, running, accelerator_for(running), QUIET).metrics["questions"] == 40


def test_resumed_equals_undisturbed(scenes, tmp_path, monkeypatch):
    """With dropout, and with Adamax: to the same bits."""
    chosen = {"model": "ban-po-u", "dropout": (0.2, 0.5)}
    train(scenes, tmp_path / "whole", **chosen)
    make_step = Run.make_step

    def killed(self):
        if self.step == 7:  # within the second epoch
            self.save()
            raise Killed
        return make_step(self)

    with monkeypatch.context() as patch:
        patch.setattr(Run, "make_step", killed)
        with pytest.raises(Killed):
            train(scenes, tmp_path / "killed", **chosen)
    torch.rand(3)  # the state of the process is another one
    train(scenes, tmp_path / "killed", resume=True, **chosen)
    one, two = (RunDir(tmp_path / name) for name in ("whole", "killed"))
    assert one.model.read_bytes() == two.model.read_bytes()
    assert records.read(one.record).metrics == records.read(two.record).metrics


@pytest.mark.parametrize("model", ["ban", "ban-po-u"])
def test_a_batch_is_learned_by_heart(scenes, model):
    t = VqaTask(config(scenes, model=model, hidden=16), CPU)
    torch.manual_seed(0)
    ban, chosen = t.build(), torch.arange(32)
    batch, optimiser = t.questions(t.train, chosen), t.optimiser(list(ban.parameters()))
    optimiser.param_groups[0]["lr"] = 0.01

    def right():
        return vqa.accuracy(ban(*batch.objects, batch.tokens).argmax(-1), t.train.judged[chosen]).mean().item()

    before = right()
    for _ in range(60):
        optimiser.zero_grad()
        t.loss(ban, batch).backward()
        optimiser.step()
    assert right() > before + 0.4


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"model": "best"}, "unknown model 'best'; there are ban, ban-lstm, ban-po-u, ban-neighbours"),
        ({"preset": "huge"}, "unknown preset 'huge'; there are paper, small"),
        ({"glimpses": 0}, "glimpses must be at least 1"),
        ({"features": 2048}, r"train.hdf5: image_features is \(\d+, 6\), expected \(\d+, 2048\)"),
        ({"data": "nowhere"}, "there is no folder nowhere"),
    ],
)
def test_bad_settings(scenes, chosen, message):
    with pytest.raises((Problem, ValueError), match=message):
        VqaTask(config(scenes, **chosen), CPU)
