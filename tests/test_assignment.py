import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

import unshuffle as us
from unshuffle.assignment import gather, permutation


def test_apply_is_the_weighted_sum_of_the_elements():
    soft, x = torch.rand(2, 4, 4, dtype=torch.float64), torch.randn(2, 4, 3, dtype=torch.float64)
    y = us.apply(soft, x)
    for b, k in itertools.product(range(2), range(4)):
        torch.testing.assert_close(y[b, k], sum(soft[b, i, k] * x[b, i] for i in range(4)))
    assert gradcheck(us.apply, (soft.requires_grad_(), x.requires_grad_()))


@given(seed=st.integers(0, 10_000), size=st.integers(1, 5))
def test_assign_is_the_best_permutation(seed, size):
    soft = torch.rand(size, size, generator=torch.Generator().manual_seed(seed))
    best = max(sum(soft[i, k] for k, i in enumerate(p)) for p in itertools.permutations(range(size)))
    order = us.assign(soft)
    assert sorted(order.tolist()) == list(range(size))
    torch.testing.assert_close(soft[order, torch.arange(size)].sum(), best)


def test_assign_of_hard_assignments_in_a_batch():
    orders = torch.stack([torch.randperm(6) for _ in range(10)]).reshape(2, 5, 6)
    assert torch.equal(us.assign(permutation(orders)), orders)


@pytest.mark.parametrize("count", range(6))
def test_padded_sets_take_the_first_positions(count):
    soft = torch.rand(5, 5)
    mask = torch.zeros(5, dtype=torch.bool)
    mask[torch.randperm(5)[:count]] = True
    soft[~mask] = float("nan")
    order = us.assign(soft, mask)
    assert order[count:].eq(-1).all()
    members = mask.nonzero()[:, 0]
    if count:
        assert torch.equal(order[:count], members[us.assign(soft[mask][:, :count])])


def test_ties_are_still_a_permutation():
    assert sorted(us.assign(torch.ones(4, 4)).tolist()) == [0, 1, 2, 3]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_non_finite_names_the_item(value):
    soft = torch.rand(2, 3, 4, 4)
    soft[1, 2, 0, 0] = value
    with pytest.raises(ValueError, match=r"batch item \(1, 2\)"):
        us.assign(soft)
    with pytest.raises(ValueError, match=r"batch item \(\)"):
        us.assign(soft[1, 2])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: us.assign(torch.rand(3, 4)), ValueError, "as many positions as elements"),
        (lambda: us.assign([[1.0]]), TypeError, "soft must be a tensor"),
        (lambda: us.assign(torch.rand(4, 4), torch.ones(4)), TypeError, "mask must be boolean"),
        (lambda: us.apply(torch.rand(4, 4), torch.rand(3, 2)), ValueError, "same batch and N"),
        (lambda: us.apply(torch.rand(2, 4, 4), torch.rand(3, 4, 2)), ValueError, "same batch and N"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()


def arrangement(mask=None):
    structure = us.Sequence()
    layer = us.Arrange(structure, us.PairwiseCost(3, 8, structure), start=us.LinearStart(3, 5), steps=3)
    return layer(torch.randn(2, 5, 3), mask)


def test_hard_is_the_elements_in_the_exact_order():
    mask = torch.tensor([[True] * 5, [True, False, True, False, True]])
    result = arrangement(mask)
    assert result.order[1, 3:].eq(-1).all()
    torch.testing.assert_close(result.hard()[0], result.x[0][result.order[0]])
    torch.testing.assert_close(result.hard()[1, :3], result.x[1][result.order[1, :3]])
    assert torch.count_nonzero(result.hard()[1, 3:]) == 0
    torch.testing.assert_close(us.apply(permutation(result.order), result.x), result.hard())
    assert torch.equal(gather(result.x, result.order), result.hard())


def test_trajectory_ends_at_soft():
    result = arrangement()
    assert result.trajectory.shape == (4, 2, 5, 5)
    torch.testing.assert_close(result.trajectory[-1], result.soft)


def test_costs_and_their_weights():
    structure = us.Grid(2, 2, neighbours=True)
    layer = us.Arrange(structure, us.PairwiseCost(3, 8, structure))
    with torch.no_grad():
        layer.step_size.copy_(torch.tensor([0.5, -3.0]))
    result = layer(torch.randn(7, 4, 3))
    torch.testing.assert_close(torch.linalg.matrix_norm(result.costs), torch.ones(7, 4))
    torch.testing.assert_close(torch.linalg.matrix_norm(result.weighted)[0], torch.tensor([0.5, 0.5, 3.0, 3.0]))


def test_entropy_between_hard_and_uniform():
    structure = us.Sequence()
    layer = us.Arrange(structure, us.PairwiseCost(3, 8, structure), steps=0)
    x = torch.randn(2, 5, 3)
    torch.testing.assert_close(layer(x).entropy(), torch.full((2,), 5.0).log())
    mask = torch.tensor([[True] * 3 + [False] * 2, [False] * 5])
    torch.testing.assert_close(layer(x, mask).entropy(), torch.tensor([3.0, 1.0]).log())
    with torch.no_grad():
        layer.step_size.fill_(4.0)
    layer.steps = 6
    assert (layer(x).entropy() < torch.tensor(5.0).log()).all()


def test_repr():
    assert repr(arrangement()) == "Arrangement((2, 5, 3) on Sequence(), steps=3)"
