import pytest
import torch

from unshuffle.experiments import classifier, training
from unshuffle.experiments.classifier import Classifier, ClassifierTask, moved, settings
from unshuffle.experiments.evaluation import evaluate
from unshuffle.experiments.problem import Problem
from unshuffle.experiments.training import RunDir, Running, accelerator_for

CPU = torch.device("cpu")
TINY = {"dataset": "mnist", "size": 12, "limit": 16, "batch_size": 8, "epochs": 2}


def train(hub, run_dir, *, resume=False, **chosen):
    from rich.console import Console

    running = Running(run_dir, device="cpu", resume=resume)
    task = ClassifierTask(settings(**(TINY | chosen)), CPU, hub)
    return training.train(task, running, accelerator_for(running), Console(quiet=True))


def test_settings():
    assert settings() == Classifier()
    assert settings(dataset="cifar10").size == 32
    assert settings(dataset="cifar10").mirror
    assert settings(dataset="cifar10", size=33).cell == "classifier-cifar10-33"
    assert settings(dataset="mnist", size=30).epochs == 2


def test_images_are_rescaled_and_digits_keep_their_side(hub):
    task = ClassifierTask(settings(dataset="cifar10", size=33), CPU, hub)
    batch = task.batch(0, 0, 8, slice(None))
    assert batch.images.shape == (8, 3, 33, 33)
    assert batch.images.is_contiguous(memory_format=torch.channels_last)
    assert task.build().fc.out_features == 10
    assert task.build().conv1.kernel_size == (3, 3)
    assert not settings(dataset="mnist").mirror


def test_a_batch_is_a_function_of_seed_and_step(hub):
    config = settings(dataset="cifar10")
    whole = ClassifierTask(config, CPU, hub).batch(3, 8, 8, slice(None))
    halves = [ClassifierTask(config, CPU, hub).batch(3, 8, 8, part) for part in (slice(0, 4), slice(4, 8))]
    assert torch.equal(whole.images, torch.cat([half.images for half in halves]))
    assert torch.equal(whole.labels, torch.cat([half.labels for half in halves]))


def test_moved_by_the_loop():
    pixels = torch.randint(256, (5, 2, 6, 7), dtype=torch.uint8)
    shifts = torch.tensor([[0, 2, -3, 0, 1], [0, -1, 2, 0, 1]])
    mirrored = torch.tensor([False, False, False, True, True])
    result = moved(pixels, shifts, mirrored)
    for b in range(5):
        for row in range(6):
            for col in range(7):
                source = min(max(col - shifts[1, b].item(), 0), 6)
                source = 6 - source if mirrored[b] else source
                expected = pixels[b, :, min(max(row - shifts[0, b].item(), 0), 5), source]
                assert torch.equal(result[b, :, row, col], expected)


def test_labels_belong_to_their_images(hub):
    task = ClassifierTask(settings(dataset="cifar10", shift=0, mirror=False), CPU, hub)
    batch = task.batch(1, 0, 40, slice(None))
    everything = task.train.float()
    back = batch.images * 255 * task.std[:, None, None] + 255 * task.mean[:, None, None]
    nearest = torch.cdist(back.flatten(1), everything.flatten(1)).argmin(1)
    assert sorted(nearest.tolist()) == list(range(40))
    assert torch.equal(batch.labels, task.labels[nearest])


def small_network(classes, channels, size):
    layers = torch.nn.Conv2d(channels, 6, 3), torch.nn.BatchNorm2d(6), torch.nn.ReLU(), torch.nn.Conv2d(6, classes, 3)
    pooled = torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten())
    return pooled.to(memory_format=torch.channels_last)


def test_resumed_equals_undisturbed(hub, tmp_path, monkeypatch, kill_at):
    """With the channels last in memory, where a checkpoint holds them first."""
    monkeypatch.setattr(classifier, "network", small_network)
    record = train(hub, tmp_path / "whole")
    assert set(record.metrics) == {"accuracy", "images"}
    assert record.images_seen == 32
    kill_at(3, lambda: train(hub, tmp_path / "killed"), saving=True)
    train(hub, tmp_path / "killed", resume=True)
    one, other = (RunDir(tmp_path / name).model.read_bytes() for name in ("whole", "killed"))
    assert one == other
    assert evaluate(tmp_path / "whole", "cpu", hub) == record.metrics


def test_evaluation_counts_right_answers(hub):
    task = ClassifierTask(settings(**TINY), CPU, hub)

    class Bright(torch.nn.Module):
        def forward(self, x):
            return torch.nn.functional.one_hot((x.mean((1, 2, 3)) > 0).long(), 10).float()

    images = (task.test.float() / 255 - task.mean) / task.std
    expected = ((images.mean((1, 2, 3)) > 0).long() == task.test_labels).double().mean().item()
    assert task.evaluate(Bright()) == {"accuracy": pytest.approx(expected), "images": 16}
    assert 0 < expected < 1


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"size": 4}, "size must be at least 8, got 4"),
        ({"epochs": 0}, "epochs must be at least 1, got 0"),
        ({"lr": 0.0}, "lr must be above 0"),
        ({"dataset": "mnits"}, "unknown dataset 'mnits'"),
    ],
)
def test_bad_settings(hub, chosen, message):
    with pytest.raises((Problem, ValueError), match=message):
        ClassifierTask(settings(**chosen), CPU, hub)
