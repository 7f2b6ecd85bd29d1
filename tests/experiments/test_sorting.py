import pytest
import torch
from torch import nn

import unshuffle as us
from unshuffle.experiments import sorting
from unshuffle.experiments.problem import Problem
from unshuffle.experiments.sorting import Sorting, SortingTask, settings

CPU = torch.device("cpu")


def test_defaults_are_the_papers():
    config = Sorting()
    assert (config.steps, config.hidden, config.lr, config.batch_size) == (6, 16, 0.1, 512)
    assert sorting.INTERVALS == ((0, 1), (0, 10), (0, 1000), (1, 2), (10, 11), (100, 101), (1000, 1001))


def test_large_sets_come_in_small_batches():
    assert settings(size=120).batch_size == 512
    assert settings(size=1024).batch_size == 7
    assert settings(size=1024, batch_size=32).batch_size == 32


def test_a_batch_is_a_function_of_seed_and_step():
    task = SortingTask(settings(size=7), CPU)
    batch = task.batch(0, 512, 8, slice(None))
    assert batch.shape == (8, 7, 1)
    assert torch.equal(batch, SortingTask(settings(size=7), CPU).batch(0, 512, 8, slice(None)))
    assert torch.equal(batch, torch.cat([task.batch(0, 512, 8, slice(0, 4)), task.batch(0, 512, 8, slice(4, 8))]))
    assert not torch.equal(batch, task.batch(1, 512, 8, slice(None)))
    assert not torch.equal(batch, SortingTask(settings(size=7, seed=1), CPU).batch(0, 512, 8, slice(None)))


class Sorter(nn.Module):
    """Sorts, but for the sets that hold a number below a threshold."""

    def __init__(self, fails_below):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(()))
        self.fails_below = fails_below

    def forward(self, x):
        assert x.dtype == torch.float64
        ordered = x.sort(1).values
        failing = (x < self.fails_below).any(1, keepdim=True)
        swapped = torch.cat([ordered[:, 1:2], ordered[:, :1], ordered[:, 2:]], 1)
        return type("Result", (), {"hard": lambda self: torch.where(failing, swapped, ordered)})()


def test_a_set_counts_only_if_all_of_it_is_sorted():
    assert sorting.perfectly_sorted(Sorter(-1), 5, (0, 1), 300) == 1
    assert sorting.perfectly_sorted(Sorter(1), 5, (0, 1), 300) == 0
    share = sorting.perfectly_sorted(Sorter(0.1), 5, (0, 1), 2000)
    assert share == pytest.approx(0.9**5, abs=0.05)
    assert sorting.perfectly_sorted(Sorter(0.1), 5, (1, 2), 300) == 1


def test_evaluation_does_not_change_the_model(monkeypatch):
    monkeypatch.setattr(sorting, "SIZES", (5, 10, 15))
    task = SortingTask(settings(size=5, limit=10), CPU)
    model = task.build()
    metrics = task.evaluate(model)
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    assert list(metrics["sorted"]) == ["0-1", "0-10", "0-1000", "1-2", "10-11", "100-101", "1000-1001"]
    assert metrics["sets"] == 10
    assert metrics["other_sets"] == {"10": 10, "15": 10}


def test_lin_assign_only_knows_sizes_up_to_its_own():
    model = SortingTask(settings(size=10, model="lin-assign"), CPU).build()
    assert model.steps == 0
    assert not any(p.requires_grad for p in model.cost.parameters())
    task = SortingTask(settings(size=10, model="lin-assign", limit=2), CPU)
    assert set(task.evaluate(model)["other_sizes"]) == {"5"}


def test_loss_is_zero_for_a_sorted_result():
    task = SortingTask(settings(size=4), CPU)
    numbers = torch.rand(3, 4, 1)

    def model(x):
        return type("Result", (), {"elements": x.sort(1).values})()

    assert task.loss(model, numbers) == 0


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"model": "po"}, "unknown model 'po'; there are lin-assign, po-u, po-la, neighbours"),
        ({"size": 0}, "size must be at least 1, got 0"),
        ({"lr": -1.0}, "lr must be above 0"),
        ({"limit": 0}, "limit must be at least 1"),
    ],
)
def test_bad_settings(chosen, message):
    with pytest.raises((Problem, ValueError), match=message):
        settings(**chosen)


def test_po_u_is_a_configuration():
    assert isinstance(SortingTask(settings(), CPU).build(), us.Arrange)
