from dataclasses import replace

import pytest
import torch

import unshuffle as us
from unshuffle.restarts import restart
from unshuffle.search import order_cost


class Unrelated(torch.nn.Module):
    """Costs that follow no order at all, so that a descent rarely finds the best one."""

    def __init__(self, relations):
        super().__init__()
        self.relations = relations

    def forward(self, x):
        return torch.randn(*x.shape[:-2], self.relations, x.shape[-2], x.shape[-2])


def arrangement(structure, size, mask=None, batch=20):
    layer = us.Arrange(structure, Unrelated(len(structure.relations)), steps=3)
    return layer(torch.randn(batch, size, 3), mask)


@pytest.mark.parametrize(
    ("structure", "size"), [(us.Grid(2, 3, neighbours=True), 6), (us.Sequence(neighbours=True), 9)]
)
def test_more_starts_never_cost_more(structure, size):
    result = arrangement(structure, size)
    costs = result.weighted
    one = us.search(costs, structure, result.order)
    orders = [restart(result.descent, starts=n, random=torch.Generator().manual_seed(0)) for n in (1, 2, 8)]
    assert torch.equal(orders[0], one)
    spent = torch.stack([order_cost(costs, structure, order) for order in orders])
    assert (spent.diff(dim=0) <= 1e-6).all()
    assert (spent[2] < spent[0] - 1e-6).any()  # else the starts were for nothing
    assert torch.equal(orders[2].sort(-1).values, torch.arange(size).expand(20, size))


def test_padded_sets():
    mask = torch.rand(20, 7) > 0.3
    result = arrangement(us.Sequence(), 7, mask)
    order = restart(result.descent, starts=3)
    assert torch.equal((order >= 0).sum(-1), mask.sum(-1))


def test_other_steps():
    result = arrangement(us.Grid(2, 2), 4)
    assert restart(replace(result.descent, steps=9), starts=2).shape == (20, 4)


def test_bad_starts():
    with pytest.raises(ValueError, match="starts must be at least 1"):
        restart(arrangement(us.Grid(2, 2), 4).descent, starts=0)
