import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import unshuffle as us
from tests import reference
from unshuffle.assignment import permutation
from unshuffle.descent import Descent
from unshuffle.search import _Exchanges, _other_moves, _placed, _standing, best_of, line_moves, order_cost

STRUCTURES = [
    (us.Sequence(), (6,)),
    (us.Sequence(neighbours=True), (6,)),
    (us.Grid(2, 3, neighbours=True), (2, 3)),
    (us.Grid(3, 2), (3, 2)),
    (us.Grid(1, 5, neighbours=True), (1, 5)),
    (us.Lattice(2, 3, 2, neighbours=True), (2, 3, 2)),
]


def problem(structure, shape, batch=(3,)):
    size = len(reference.coordinates(shape))
    costs = torch.randn(*batch, len(structure.relations), size, size, dtype=torch.float64)
    order = torch.stack([torch.randperm(size) for _ in range(batch[0])])
    return costs, order


def slow_cost(costs, order, matrices):
    """Σ_r Σ_kk' O_r[k, k'] C_r[π[k], π[k']], with loops."""
    places = [k for k in range(len(order)) if order[k] >= 0]
    return sum(
        float(matrix[k, other] * cost[order[k], order[other]])
        for cost, matrix in zip(costs, matrices, strict=True)
        for k, other in itertools.product(places, repeat=2)
        if k != other
    )


@pytest.mark.parametrize(("structure", "shape"), STRUCTURES, ids=repr)
def test_order_cost_is_the_total_cost_of_the_permutation(structure, shape):
    costs, order = problem(structure, shape)
    found = order_cost(costs, structure, order)
    matrices = reference.relation_matrices(shape, structure.neighbours)
    slow = [slow_cost(c, o, matrices) for c, o in zip(costs, order, strict=True)]
    torch.testing.assert_close(found, torch.tensor(slow, dtype=torch.float64))
    zeroed = costs * (1 - torch.eye(costs.shape[-1], dtype=torch.float64))
    torch.testing.assert_close(found, us.total_cost(zeroed, permutation(order, torch.float64), structure))


@pytest.mark.parametrize(("structure", "shape"), STRUCTURES, ids=repr)
def test_every_move_changes_the_cost_by_what_it_says(structure, shape):
    costs, order = problem(structure, shape)
    real = order >= 0
    before = order_cost(costs, structure, order)
    for family in [_Exchanges(structure, costs), *_other_moves(structure, costs)]:
        changes = family.changes(_placed(costs, order), real)
        assert changes.shape == (3, len(family.sources))
        for move, source in enumerate(family.sources):
            assert sorted(source.tolist()) == list(range(order.shape[-1]))
            after = order_cost(costs, structure, order[:, source])
            torch.testing.assert_close(changes[:, move], after - before)


@pytest.mark.parametrize(("structure", "shape"), STRUCTURES, ids=repr)
def test_every_move_changes_the_costs_of_the_places_by_what_it_says(structure, shape):
    costs, order = problem(structure, shape)
    places = torch.randn_like(costs[:, 0])

    def slow(order):
        return torch.stack([sum(u[o[k], k] for k in range(len(o))) for u, o in zip(places, order, strict=True)])

    nothing = torch.zeros_like(costs)
    torch.testing.assert_close(order_cost(nothing, structure, order, places), slow(order))
    for family in [_Exchanges(structure, costs), *_other_moves(structure, costs)]:
        shifts = family.shifts(_standing(places, order))
        for move, source in enumerate(family.sources):
            torch.testing.assert_close(shifts[:, move], slow(order[:, source]) - slow(order))


@pytest.mark.parametrize("count", [0, 1, 4, 6])
def test_places_of_padded_sequences(count):
    costs, order = problem(us.Sequence(), (6,), (1,))
    order = torch.cat([order[:, :count], torch.full((1, 6 - count), -1)], 1)
    places = torch.randn_like(costs[:, 0])
    found = us.search(costs, us.Sequence(), order, places=places)
    before, after = (order_cost(costs, us.Sequence(), each, places) for each in (order, found))
    assert before.item() == pytest.approx(
        order_cost(costs, us.Sequence(), order).item() + sum(places[0, order[0, k], k].item() for k in range(count))
    )
    assert after <= before
    assert torch.equal(found[:, :count].sort().values, order[:, :count].sort().values)
    assert (found[:, count:] == -1).all()


def test_the_start_decides_where_the_costs_do_not():
    """Zero costs: the search ends where every element stands at the place that its start asks for."""
    scores = 5 * torch.eye(6).roll(1, 1)
    descent = Descent.of(torch.zeros(4, 6, 6), us.Grid(2, 3, neighbours=True), scores, 8, 1.0, 4, 1.0, None)
    found = us.search(descent.weighted(), descent.structure, torch.arange(6), places=descent.places())
    assert torch.equal(found, torch.arange(6).roll(1))
    torch.testing.assert_close(descent.places(), -scores / 8)


@given(seed=st.integers(0, 10_000), neighbours=st.booleans(), count=st.integers(0, 6))
def test_moves_of_padded_sequences(seed, neighbours, count):
    """A move that touches padding is forbidden; any other changes the cost by what it says."""
    torch.manual_seed(seed)
    structure = us.Sequence(neighbours)
    costs, order = problem(structure, (6,), (1,))
    order = torch.cat([order[:, :count], torch.full((1, 6 - count), -1)], 1)
    matrices = reference.relation_matrices((6,), neighbours)
    before = order_cost(costs, structure, order)
    assert before.item() == pytest.approx(slow_cost(costs[0], order[0], matrices))
    for family in [_Exchanges(structure, costs), *_other_moves(structure, costs)]:
        changes = family.changes(_placed(costs, order), order >= 0)[0]
        for change, source in zip(changes, family.sources, strict=True):
            touches_padding = bool((source != torch.arange(6))[count:].any())
            expected = (
                torch.inf if touches_padding else (order_cost(costs, structure, order[:, source]) - before).item()
            )
            assert change.item() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("structure", "shape"), STRUCTURES, ids=repr)
def test_ends_where_no_move_helps(structure, shape):
    costs, order = problem(structure, shape)
    found = us.search(costs, structure, order)
    assert (order_cost(costs, structure, found) <= order_cost(costs, structure, order)).all()
    for family in [_Exchanges(structure, costs), *_other_moves(structure, costs)]:
        assert family.changes(_placed(costs, found), found >= 0).min() > -1e-4


@pytest.mark.parametrize(("structure", "shape"), STRUCTURES[:5], ids=repr)
def test_takes_the_best_move_first(structure, shape):
    costs, order = problem(structure, shape, (1,))
    one = us.search(costs, structure, order, rounds=1)
    families = [_Exchanges(structure, costs), *_other_moves(structure, costs)]
    candidates = [order_cost(costs, structure, order[:, s]).item() for family in families for s in family.sources]
    candidates.append(order_cost(costs, structure, order).item())
    assert order_cost(costs, structure, one).item() == pytest.approx(min(candidates))
    assert torch.equal(us.search(costs, structure, order, rounds=0), order)


def test_finds_the_optimum_of_small_problems_from_several_starts():
    structure = us.Grid(2, 3, neighbours=True)
    costs = torch.randn(5, 4, 6, 6, dtype=torch.float64)
    starts = torch.stack([torch.stack([torch.randperm(6) for _ in range(5)]) for _ in range(20)])
    found = best_of(costs, structure, us.search(costs, structure, starts))
    every = torch.tensor(list(itertools.permutations(range(6))))[:, None].expand(-1, 5, -1)
    optimum = order_cost(costs, structure, every).min(0).values
    torch.testing.assert_close(order_cost(costs, structure, found), optimum)
    places = torch.randn(5, 6, 6, dtype=torch.float64)
    found = best_of(costs, structure, us.search(costs, structure, starts, places=places), places)
    optimum = order_cost(costs, structure, every, places).min(0).values
    torch.testing.assert_close(order_cost(costs, structure, found, places), optimum)


def test_moves_of_a_grid():
    moves = line_moves((2, 3)).tolist()
    assert [3, 4, 5, 0, 1, 2] in moves  # rows exchanged
    assert [1, 0, 2, 4, 3, 5] in moves  # columns exchanged
    assert [2, 0, 1, 3, 4, 5] in moves  # one row shifted
    assert [5, 3, 4, 2, 0, 1] in moves  # everything shifted along both axes
    assert len({tuple(m) for m in moves}) == len(moves)


def test_sorts_and_leaves_a_batch_of_padded_sets_valid():
    x = torch.rand(4, 7)
    mask = torch.arange(7) < torch.tensor([7, 4, 1, 0])[:, None]
    costs = (x[:, :, None] - x[:, None])[:, None]
    start = torch.where(mask, torch.arange(7), -1)
    order = us.search(costs, us.Sequence(), start)
    for item in range(4):
        count = int(mask[item].sum())
        assert torch.equal(order[item, :count], x[item, :count].argsort())
        assert (order[item, count:] == -1).all()


def test_zero_costs_move_nothing():
    order = torch.randperm(6)
    assert torch.equal(us.search(torch.zeros(4, 6, 6), us.Grid(2, 3, neighbours=True), order), order)


@pytest.mark.parametrize(
    ("order", "error", "message"),
    [
        (torch.arange(5), ValueError, r"order must be \(…, \*batch, N\)"),
        (torch.rand(6), TypeError, "int64 tensor"),
        (torch.zeros(6).long(), ValueError, "each element at most once"),
        (torch.tensor([0, 1, 2, 3, 4, 6]), ValueError, "from 0 to N"),
        (torch.tensor([-1, 1, 2, 3, 4, 5]), ValueError, "only past the end"),
    ],
)
def test_bad_input(order, error, message):
    with pytest.raises(error, match=message):
        us.search(torch.zeros(2, 6, 6), us.Grid(2, 3), order)


def test_bad_places():
    with pytest.raises(ValueError, match=r"places must be \(\*batch, N, K\) = \(6, 6\)"):
        us.search(torch.zeros(2, 6, 6), us.Grid(2, 3), torch.arange(6), places=torch.zeros(6, 5))
