import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

import benchmarks.literal as literal
import unshuffle as us
from tests import reference
from unshuffle.descent import Descent

CASES = [
    (us.Sequence(), (5,)),
    (us.Sequence(neighbours=True), (4,)),
    (us.Grid(2, 3), (2, 3)),
    (us.Grid(3, 2, neighbours=True), (3, 2)),
    (us.Lattice(2, 1, 3, neighbours=True), (2, 1, 3)),
    (us.Lattice(2, 2, 2), (2, 2, 2)),
]


def problem(structure, shape, batch=()):
    size = len(reference.coordinates(shape))
    costs = torch.randn(*batch, len(structure.relations), size, size, dtype=torch.float64)
    return costs, torch.randn(*batch, size, size, dtype=torch.float64)


def antisymmetric(costs):
    return costs - costs.mT


@pytest.mark.parametrize(("structure", "shape"), CASES, ids=repr)
def test_total_cost_equals_the_definition(structure, shape):
    costs, soft = problem(structure, shape, (2,))
    expected = [
        reference.total_cost(c, p, reference.relation_matrices(shape, structure.neighbours))
        for c, p in zip(costs, soft, strict=True)
    ]
    torch.testing.assert_close(us.total_cost(costs, soft, structure), torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize(("structure", "shape"), CASES, ids=repr)
@pytest.mark.parametrize("started", [False, True], ids=["uniform", "started"])
def test_every_iterate_equals_the_definition(structure, shape, started):
    costs, start = problem(structure, shape)
    eta = torch.linspace(-0.7, 1.9, len(structure.relations), dtype=torch.float64)  # |η| is used
    options = {"steps": 3, "iterations": 3, "temperature": 0.8}
    iterates = us.trajectory(costs, structure, start=start if started else None, step_size=eta, **options)
    expected = reference.descend(
        costs, shape, structure.neighbours, start if started else None, step_sizes=eta.tolist(), **options
    )
    torch.testing.assert_close(iterates, torch.stack(expected))
    last = us.descend(costs, structure, start=start if started else None, step_size=eta, **options)
    assert torch.equal(last, iterates[-1])


def test_the_sequence_gradient_is_the_papers_equation():
    cost, soft = antisymmetric(torch.randn(5, 5, dtype=torch.float64)), torch.rand(5, 5, dtype=torch.float64)
    general = reference.gradient(cost[None], soft, reference.relation_matrices((5,), neighbours=False))
    torch.testing.assert_close(general, reference.sequence_gradient(cost, soft))


@pytest.mark.parametrize(("structure", "shape"), CASES, ids=repr)
def test_the_update_is_the_derivative_of_the_total_cost(structure, shape):
    """P̃¹ − P̃⁰ = −η ∂c/∂P at P = S(P̃⁰), found by autograd; a first Sinkhorn of the difference shows it."""
    costs, start = problem(structure, shape, (2,))
    descent = Descent.of(costs, structure, None, 1, 1.0, 4, 1.0, None)
    soft = us.sinkhorn(start).requires_grad_()
    us.total_cost(descent.costs(), soft, structure).sum().backward()
    stepped = us.descend(costs, structure, start=start, steps=1, step_size=1.7)
    torch.testing.assert_close(stepped, us.sinkhorn(start - 1.7 * soft.grad))


@pytest.mark.parametrize("rows_cols", [(2, 3), (5, 5)])
def test_the_literal_version_computes_the_same(rows_cols):
    """So that the benchmarks compare like with like."""
    size = rows_cols[0] * rows_cols[1]
    costs = antisymmetric(torch.randn(3, 2, size, size, dtype=torch.float64))
    eta = torch.tensor(1.3, dtype=torch.float64)
    slow = literal.descend(costs, literal.GridGradient(*rows_cols), 3, eta)
    torch.testing.assert_close(us.descend(costs, us.Grid(*rows_cols), steps=3, step_size=eta), slow)
    slow = literal.descend(costs[:, :1], literal.sequence_gradient, 3, eta)
    torch.testing.assert_close(us.descend(costs[:, :1], us.Sequence(), steps=3, step_size=eta), slow)


@pytest.mark.parametrize(("structure", "shape"), CASES, ids=repr)
@pytest.mark.parametrize("started", [False, True], ids=["uniform", "started"])
def test_gradcheck(structure, shape, started):
    costs, start = problem(structure, shape)
    eta = torch.rand(len(structure.relations), dtype=torch.float64, requires_grad=True)

    def descend(costs, eta, start=None):
        return us.descend(costs, structure, start=start, steps=2, step_size=eta)

    inputs = (costs.requires_grad_(), eta, *([start.requires_grad_()] if started else []))
    assert gradcheck(descend, inputs)
    assert gradcheck(lambda c, p: us.total_cost(c, p, structure), (costs, start.requires_grad_()))


@pytest.mark.parametrize("neighbours", [False, True])
def test_gradcheck_with_mask(neighbours):
    structure = us.Sequence(neighbours)
    costs, start = problem(structure, (4,), (2,))
    mask = torch.tensor([[True, False, True, True], [False, False, True, False]])
    eta = torch.rand((), dtype=torch.float64, requires_grad=True)
    assert gradcheck(
        lambda c, s, e: us.descend(c, structure, start=s, steps=2, step_size=e, mask=mask),
        (costs.requires_grad_(), start.requires_grad_(), eta),
    )


@pytest.mark.parametrize("neighbours", [False, True])
@pytest.mark.parametrize("started", [False, True])
@pytest.mark.parametrize("count", range(6))
def test_padded_equals_unpadded(neighbours, started, count):
    structure = us.Sequence(neighbours)
    costs, start = problem(structure, (5,))
    mask = torch.zeros(5, dtype=torch.bool)
    mask[torch.randperm(5)[:count]] = True
    costs[:, ~mask] = 1e6  # finite rubbish: `Arrange` zeroes the padding before it is compared
    costs.requires_grad_(), start.requires_grad_()
    weight = torch.randn(5, 5, dtype=torch.float64)
    iterates = us.trajectory(costs, structure, start=start if started else None, mask=mask)
    (iterates[-1] * weight).sum().backward()
    assert iterates.isfinite().all()
    assert costs.grad.isfinite().all()
    assert torch.count_nonzero(iterates[:, ~mask]) == 0
    assert torch.count_nonzero(iterates[:, :, count:]) == 0
    assert torch.count_nonzero(costs.grad[:, ~mask]) == torch.count_nonzero(costs.grad[:, :, ~mask]) == 0
    if count:
        few = costs.detach()[:, mask][:, :, mask].clone().requires_grad_()
        few_start = start.detach()[mask][:, :count].clone().requires_grad_()
        expected = us.trajectory(few, structure, start=few_start if started else None)
        (expected[-1] * weight[mask][:, :count]).sum().backward()
        torch.testing.assert_close(iterates[:, mask][:, :, :count], expected)
        torch.testing.assert_close(costs.grad[:, mask][:, :, mask], few.grad)
        if started:
            torch.testing.assert_close(start.grad[mask][:, :count], few_start.grad)


@given(seed=st.integers(0, 10_000), rows=st.integers(1, 3), cols=st.integers(1, 3), neighbours=st.booleans())
def test_permuting_the_elements_permutes_the_rows(seed, rows, cols, neighbours):
    generator = torch.Generator().manual_seed(seed)
    structure, size = us.Grid(rows, cols, neighbours=neighbours), rows * cols
    costs = torch.randn(len(structure.relations), size, size, generator=generator, dtype=torch.float64)
    start = torch.randn(size, size, generator=generator, dtype=torch.float64)
    order = torch.randperm(size, generator=generator)
    soft = us.descend(costs, structure, start=start)
    torch.testing.assert_close(us.descend(costs[:, order][:, :, order], structure, start=start[order]), soft[order])


@given(seed=st.integers(0, 10_000), rows=st.integers(1, 3), cols=st.integers(1, 4), neighbours=st.booleans())
def test_transposing_a_grid_swaps_its_relations(seed, rows, cols, neighbours):
    generator = torch.Generator().manual_seed(seed)
    structure, size = us.Grid(rows, cols, neighbours=neighbours), rows * cols
    costs = torch.randn(len(structure.relations), size, size, generator=generator, dtype=torch.float64)
    swapped = costs[[1, 0, 3, 2] if neighbours else [1, 0]]
    soft = us.descend(costs, structure).unflatten(-1, (rows, cols)).transpose(-1, -2).flatten(-2)
    torch.testing.assert_close(us.descend(swapped, us.Grid(cols, rows, neighbours=neighbours)), soft)


@pytest.mark.parametrize("neighbours", [False, True])
def test_a_grid_of_one_row_is_a_sequence(neighbours):
    costs = torch.randn(2 * (1 + neighbours), 6, 6, dtype=torch.float64)
    soft = us.descend(costs, us.Grid(1, 6, neighbours=neighbours))
    torch.testing.assert_close(us.descend(costs[1::2], us.Sequence(neighbours)), soft)


@pytest.mark.parametrize("structure", [us.Sequence(), us.Grid(2, 3), us.Lattice(2, 3, 2)], ids=repr)
def test_total_cost_is_antisymmetric_under_reversal(structure):
    size = 6 if structure != us.Lattice(2, 3, 2) else 12
    costs = torch.randn(len(structure.relations), size, size, dtype=torch.float64)
    soft = torch.rand(size, size, dtype=torch.float64)
    torch.testing.assert_close(us.total_cost(costs, soft.flip(-1), structure), -us.total_cost(costs, soft, structure))


def test_hardens_to_the_perfect_order_as_the_step_size_grows():
    values = torch.randperm(8).double()
    costs = (values[:, None] - values)[None]
    order = values.argsort()
    hard = torch.eye(8, dtype=torch.float64)[order].T
    # The larger the step, the more normalisations until rows sum to 1: with few of them, large steps overshoot
    softs = [us.descend(costs, us.Sequence(), step_size=eta, iterations=1000) for eta in (1, 3, 10, 20, 1000)]
    gaps = [(soft - hard).abs().max().item() for soft in softs]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < 0.01


def test_descending_lowers_the_cost():
    structure = us.Grid(2, 4, neighbours=True)
    costs = torch.randn(20, 4, 8, 8, dtype=torch.float64)
    normal = Descent.of(costs, structure, None, 0, 1.0, 4, 1.0, None).costs()
    soft = us.trajectory(costs, structure, steps=20)
    assert (us.total_cost(normal, soft[-1], structure) < us.total_cost(normal, soft[0], structure)).all()


def test_neither_scale_nor_constant_matters():
    structure = us.Sequence(neighbours=True)
    costs = torch.randn(2, 5, 5, dtype=torch.float64)
    changed = torch.stack([costs[0] * 7 + 3, costs[1] * 0.01 + 5])  # a constant is symmetric: invisible to an order
    torch.testing.assert_close(us.descend(changed, structure), us.descend(costs, structure))


@pytest.mark.parametrize("neighbours", [False, True])
def test_zero_costs_and_one_element(neighbours):
    structure = us.Sequence(neighbours)
    for size in (1, 4):
        costs = torch.zeros(1 + neighbours, size, size, requires_grad=True)
        soft = us.descend(costs, structure)
        torch.testing.assert_close(soft, torch.full((size, size), 1 / size))
        soft.square().sum().backward()
        assert costs.grad.isfinite().all()


@pytest.mark.parametrize("scale", [1e-4, 1e4])
def test_finite_for_extreme_costs_and_starts_in_float32(scale):
    structure = us.Grid(2, 3, neighbours=True)
    costs = (torch.randn(4, 4, 6, 6) * scale).requires_grad_()
    start = (torch.randn(4, 6, 6) * scale).requires_grad_()
    eta = torch.tensor(scale, requires_grad=True)
    us.descend(costs, structure, start=start, step_size=eta).square().sum().backward()
    for tensor in (costs, start, eta):
        assert tensor.grad.isfinite().all()


def test_batches_broadcast():
    structure = us.Sequence()
    costs = torch.randn(3, 1, 4, 4, dtype=torch.float64)
    starts = torch.randn(2, 1, 4, 4, dtype=torch.float64)  # several starts for every set
    soft = us.descend(costs, structure, start=starts)
    assert soft.shape == (2, 3, 4, 4)
    torch.testing.assert_close(soft[1, 2], us.descend(costs[2], structure, start=starts[1, 0]))
    eta = torch.rand(3, 1, dtype=torch.float64)
    torch.testing.assert_close(
        us.descend(costs, structure, step_size=eta)[1], us.descend(costs[1], structure, step_size=eta[1])
    )


def test_autocast_leaves_the_descent_in_float32():
    costs = torch.randn(1, 6, 6)
    expected = us.descend(costs, us.Sequence())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        soft = us.descend(costs, us.Sequence())
        assert us.descend(costs.bfloat16(), us.Sequence()).dtype == torch.float32
    assert torch.equal(soft, expected)


GOOD = {"costs": torch.zeros(2, 2, 6, 6), "structure": us.Grid(2, 3)}


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"costs": torch.zeros(6, 6)}, ValueError, r"R = 2 relations of Grid\(2, 3\), got a float32 tensor"),
        ({"costs": torch.zeros(3, 6, 6)}, ValueError, "R = 2 relations"),
        ({"costs": torch.zeros(2, 6, 5)}, ValueError, "R = 2 relations"),
        ({"costs": torch.zeros(2, 5, 5)}, ValueError, "6 positions and needs exactly as many elements, got 5"),
        ({"costs": torch.zeros(2, 6, 6, dtype=torch.long)}, TypeError, "int64"),
        ({"structure": (2, 3)}, TypeError, "structure must be a Sequence, Grid or Lattice"),
        ({"start": torch.zeros(6, 5)}, ValueError, r"start must be \(\*batch, N, K\) = \(2, 6, 6\)"),
        ({"start": torch.zeros(3, 6, 6)}, ValueError, "start must be"),
        ({"steps": -1}, ValueError, "steps must be at least 0, got -1"),
        ({"steps": "4"}, TypeError, "steps must be a whole number"),
        ({"step_size": "1"}, TypeError, "step_size must be a number or a tensor"),
        ({"step_size": torch.ones(3)}, ValueError, "step_size must be a number or broadcast"),
        ({"iterations": 0}, ValueError, "iterations must be at least 1"),
        ({"temperature": 0}, ValueError, "temperature must be above 0"),
        ({"mask": torch.ones(2, 6, dtype=torch.bool)}, ValueError, "takes no mask"),
        ({"mask": torch.ones(2, 6)}, TypeError, "mask must be boolean"),
    ],
)
@pytest.mark.parametrize("function", [us.descend, us.trajectory])
def test_bad_input(function, arguments, error, message):
    with pytest.raises(error, match=message):
        function(**(GOOD | arguments))


def test_bad_soft():
    with pytest.raises(ValueError, match="soft must assign the 6 elements"):
        us.total_cost(torch.zeros(2, 6, 6), torch.zeros(5, 6), us.Grid(2, 3))
