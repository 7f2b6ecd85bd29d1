import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import unshuffle as us
from unshuffle.insertion import sweep
from unshuffle.search import order_cost


def problem(seed, size, problems=2, copies=3):
    torch.manual_seed(seed)
    gains = torch.randint(-9, 10, (problems, size, size)).double().triu(1)
    return gains - gains.mT, torch.rand(problems, copies, size).argsort(-1)


def cost(gain, order):
    """Σ_{k<k'} A[π[k], π[k']], with loops."""
    return sum(float(gain[i, j]) for i, j in itertools.combinations(order.tolist(), 2))


def run(gains, orders, **changed):
    arguments = {"sequence": list(range(gains.shape[-1])), "tolerance": torch.full((len(gains),), 1e-9).double()}
    return sweep(gains, orders, **arguments | {"deadline": math.inf} | changed)


@given(seed=st.integers(0, 10_000), size=st.integers(1, 7))
def test_ends_where_no_insertion_helps(seed, size):
    gains, orders = problem(seed, size)
    found = run(gains, orders)
    assert torch.equal(found.sort(-1).values, torch.arange(size).expand(2, 3, size))
    for gain, before, after in zip(gains, orders, found, strict=True):
        for start, end in zip(before, after, strict=True):
            assert cost(gain, end) <= cost(gain, start)
            for source, target in itertools.product(range(size), repeat=2):
                moved = end.tolist()
                moved.insert(target, moved.pop(source))
                assert cost(gain, torch.tensor(moved)) >= cost(gain, end)


def test_one_element_goes_to_its_best_place():
    gains, orders = problem(1, 6, problems=1, copies=8)
    found = run(gains, orders, sequence=[4])
    for before, after in zip(orders[0], found[0], strict=True):
        others = [i for i in before.tolist() if i != 4]
        assert [i for i in after.tolist() if i != 4] == others
        every = [cost(gains[0], torch.tensor([*others[:k], 4, *others[k:]])) for k in range(6)]
        assert cost(gains[0], after) == min(every)


def test_a_full_search_improves_on_it_by_no_insertion():
    """`search` measures the same costs, and knows the same insertions."""
    gains, orders = problem(3, 12, problems=1, copies=1)
    found = run(gains, orders)[0, 0]
    again = us.search(gains, us.Sequence(), found)
    exchanged = order_cost(gains, us.Sequence(), again) < order_cost(gains, us.Sequence(), found)
    assert torch.equal(again, found) or exchanged


def test_equal_costs_and_late_deadlines_move_nothing():
    gains, orders = problem(0, 6)
    assert torch.equal(run(torch.zeros_like(gains), orders), orders)
    assert torch.equal(run(gains, orders, deadline=-math.inf), orders)


@pytest.mark.parametrize("tolerance", [1e-9, 100.0])
def test_small_improvements_are_rounding_errors(tolerance):
    gains, orders = problem(0, 6)
    found = run(gains, orders, tolerance=torch.full((2,), tolerance))
    assert torch.equal(found, orders) == (tolerance > 9 * 6)
