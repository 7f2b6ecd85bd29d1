import itertools
import math
import time

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import unshuffle as us
from unshuffle.search import order_cost

EVERY = {n: torch.tensor(list(itertools.permutations(range(n)))) for n in range(1, 8)}


def paid(costs, order):
    """Σ costs[i, j] over the pairs where i stands before j, with loops."""
    return sum(float(costs[i, j]) for i, j in itertools.combinations([i for i in order.tolist() if i >= 0], 2))


def cheapest(costs):
    """The optimum over all permutations."""
    every = EVERY[len(costs)]
    return costs[every[:, :, None], every[:, None, :]].triu(1).sum((1, 2)).min().item()


def order(costs, **more):
    """Without a clock in the result."""
    return us.order(costs, **{"seconds": math.inf} | more)


@given(seed=st.integers(0, 10_000), size=st.integers(1, 7), ties=st.booleans())
def test_optimal_on_small_problems(seed, size, ties):
    torch.manual_seed(seed)
    costs = torch.randn(size, size, dtype=torch.float64)
    costs = costs.sign() if ties else costs
    found = order(costs, generations=5)
    assert found.dtype == torch.int64
    assert found.sort().values.tolist() == list(range(size))
    assert paid(costs, found) == pytest.approx(cheapest(costs))


def test_sorts():
    numbers = torch.rand(3, 2, 20)
    found = order(numbers.unsqueeze(-1) - numbers.unsqueeze(-2), generations=0)
    assert torch.equal(found, numbers.argsort(-1))


def test_beats_one_descent_with_search():
    costs = torch.randn(10, 30, 30, dtype=torch.float64)
    start = us.assign(us.descend(costs.unsqueeze(-3), us.Sequence(), steps=20, step_size=10.0))
    once = us.search(costs.unsqueeze(-3), us.Sequence(), start)
    values = [[paid(c, o) for c, o in zip(costs, orders, strict=True)] for orders in (once, order(costs))]
    before, after = torch.tensor(values)
    assert (after <= before + 1e-9).all()
    assert (after < before - 1e-9).sum() > 5


def test_breeding_improves():
    costs = torch.randn(4, 40, 40, dtype=torch.float64)
    none, some = (order(costs, generations=n) for n in (0, 10))
    before, after = (torch.tensor([paid(c, o) for c, o in zip(costs, x, strict=True)]) for x in (none, some))
    assert (after <= before + 1e-9).all()
    assert (after < before - 1e-9).any()


def test_another_numbering_of_the_items_costs_the_same():
    costs, renamed = torch.randn(12, 12, dtype=torch.float64), torch.randperm(12)
    found = renamed[order(costs[renamed][:, renamed])]
    assert torch.equal(found, order(costs))  # random costs have one optimum, which twelve items do not hide


def test_only_the_difference_of_two_directions_matters():
    costs = torch.randint(-20, 20, (9, 9)).double()
    both = torch.randint(-20, 20, (9, 9)).double()
    assert torch.equal(order(costs + both + both.T), order(costs))


@pytest.mark.parametrize("factor", [1e-320, 1e-30, 1e300, 1.7e308])
def test_the_scale_does_not_matter(factor):
    costs = torch.randn(8, 8, dtype=torch.float64).sign()
    assert torch.equal(order(costs * factor), order(costs))


def test_a_batch_is_its_items_one_by_one(monkeypatch):
    monkeypatch.setattr("unshuffle.ordering.TOGETHER", 3 * 96 * 15)  # three at once, in two parts
    costs = torch.randn(2, 2, 15, 15, dtype=torch.float64)
    found = order(costs)
    assert found.shape == (2, 2, 15)
    for i, j in itertools.product(range(2), repeat=2):
        assert torch.equal(found[i, j], order(costs[i, j]))


def test_the_same_again():
    costs = torch.randn(25, 25)
    assert torch.equal(order(costs), order(costs))
    torch.manual_seed(7)  # the global generator has no say, and is left alone
    state = torch.get_rng_state()
    order(costs)
    assert torch.equal(torch.get_rng_state(), state)

    def seeded():
        random = torch.Generator().manual_seed(3)
        return order(costs, random=random, generations=1), random.get_state()

    (one, after), (two, again) = seeded(), seeded()
    assert torch.equal(one, two)
    assert torch.equal(after, again)
    assert not torch.equal(after, torch.Generator().manual_seed(3).get_state())  # a second call meets other noise


def test_padded_sets():
    mask = torch.tensor([[True, False, True, True, True, False], [False] * 6, [True] * 6])
    costs = torch.randn(3, 6, 6, dtype=torch.float64)
    costs[0, 1] = torch.nan  # what stands in the padding is not read
    found = order(costs, mask=mask)
    assert (found[1] == -1).all()
    assert found[0, 4:].tolist() == [-1, -1]
    real = mask[0].nonzero()[:, 0]
    assert torch.equal(found[0, :4], real[order(costs[0][real][:, real])])
    assert torch.equal(found[2], order(costs[2]))
    assert torch.equal(order(costs[2], mask=mask)[2], found[2])  # one set under three masks


@pytest.mark.parametrize("shape", [(0, 0), (1, 1), (2, 2), (3, 0, 0), (0, 4, 4), (2, 1, 1), (5, 5)])
def test_zero_costs_and_small_sizes(shape):
    found = order(torch.zeros(shape))
    assert torch.equal(found.sort(-1).values, torch.arange(shape[-1]).expand(shape[:-1]))


def test_two_items():
    assert order(torch.tensor([[9.0, 1.0], [2.0, 9.0]])).tolist() == [0, 1]
    assert order(torch.tensor([[9.0, 2.0], [1.0, 9.0]])).tolist() == [1, 0]


def test_time_is_up():
    """What was found by then is an order all the same, and a sensible one."""
    costs = torch.randn(150, 150)
    begin = time.perf_counter()
    found = us.order(costs, generations=10_000, seconds=0.01)
    assert time.perf_counter() - begin < 30
    assert torch.equal(found.sort().values, torch.arange(150))
    costed = order_cost(costs[None], us.Sequence(), torch.stack([found, torch.arange(150)]))
    assert costed[0] < costed[1]


def test_half_precision():
    costs = torch.randn(6, 6, dtype=torch.float16)
    assert torch.equal(order(costs), order(costs.double()))


@pytest.mark.parametrize(
    ("costs", "more", "error", "message"),
    [
        (torch.zeros(3, 4), {}, ValueError, r"costs must be \(\*batch, N, N\), got a float32 tensor of shape \(3, 4\)"),
        (torch.zeros(3), {}, ValueError, "costs must be"),
        (torch.zeros(3, 3).long(), {}, TypeError, "costs must be float16"),
        ([[0.0]], {}, TypeError, "costs must be a tensor"),
        (torch.tensor([[0, 1], [torch.nan, 0]]), {}, ValueError, r"costs must be finite, got nan at \(1, 0\)"),
        (torch.full((2, 3, 3), torch.inf), {}, ValueError, r"costs must be finite, got inf at \(0, 0, 0\)"),
        (torch.zeros(3, 3), {"mask": torch.ones(4, dtype=torch.bool)}, ValueError, "mask must be"),
        (torch.zeros(3, 3), {"generations": -1}, ValueError, "generations must be at least 0"),
        (torch.zeros(3, 3), {"seconds": 0}, ValueError, "seconds must be above 0"),
    ],
)
def test_bad_input(costs, more, error, message):
    with pytest.raises(error, match=message):
        us.order(costs, **more)
