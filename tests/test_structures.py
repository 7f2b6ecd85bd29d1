import pytest
import torch
from torch.autograd import gradcheck

import unshuffle as us
from tests import reference
from unshuffle.structures import Neighbour, Order, antisymmetric, scale_to_norm, transpose

STRUCTURES = [
    (us.Sequence(neighbours=True), (6,)),
    (us.Grid(2, 3, neighbours=True), (2, 3)),
    (us.Grid(3, 2, neighbours=True), (3, 2)),
    (us.Grid(1, 4, neighbours=True), (1, 4)),
    (us.Lattice(2, 3, 2, neighbours=True), (2, 3, 2)),
    (us.Lattice(2, 1, 2, 3, neighbours=True), (2, 1, 2, 3)),
]


@pytest.mark.parametrize(("structure", "shape"), STRUCTURES, ids=repr)
def test_relations_apply_their_matrices(structure, shape):
    matrices = reference.relation_matrices(shape, neighbours=True)
    size = len(matrices[0])
    soft = torch.randn(2, 3, size, size, dtype=torch.float64)
    assert len(structure.relations) == len(matrices)
    for relation, matrix in zip(structure.relations, matrices, strict=True):
        torch.testing.assert_close(structure.apply(relation, soft), soft @ matrix.T)


@pytest.mark.parametrize(("structure", "shape"), STRUCTURES, ids=repr)
def test_blocks_multiply_to_the_gradient(structure, shape):
    matrices = reference.relation_matrices(shape, neighbours=True)
    size = len(matrices[0])
    costs = structure.centre(torch.randn(len(matrices), size, size, dtype=torch.float64))
    soft = torch.rand(size, size, dtype=torch.float64)
    blocks = zip(structure.cost_blocks(costs), structure.gradient_blocks(soft), strict=True)
    product = torch.stack([cost @ position for cost, position in blocks]).sum(0)
    expected = sum(c @ soft @ m.T + c.T @ soft @ m for c, m in zip(costs, matrices, strict=True))
    torch.testing.assert_close(product, expected)
    if size < 8:
        torch.testing.assert_close(product, reference.gradient(costs, soft, matrices))


@pytest.mark.parametrize(("structure", "shape"), STRUCTURES, ids=repr)
def test_gradcheck(structure, shape):
    size = len(reference.coordinates(shape))
    soft = torch.randn(2, size, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda p: tuple(structure.gradient_blocks(p)), soft)


def test_transposing_a_grid_swaps_its_axes():
    grid, transposed = us.Grid(2, 3, neighbours=True), us.Grid(3, 2, neighbours=True)
    soft = torch.randn(6, 6, dtype=torch.float64)
    swapped = soft.unflatten(-1, (2, 3)).transpose(-1, -2).flatten(-2)
    for kind in (Order, Neighbour):
        for axis in (0, 1):
            one = grid.apply(kind(axis), soft).unflatten(-1, (2, 3)).transpose(-1, -2).flatten(-2)
            torch.testing.assert_close(one, transposed.apply(kind(1 - axis), swapped))


def test_a_grid_of_one_row_is_a_sequence():
    soft = torch.randn(5, 5, dtype=torch.float64)
    for kind in (Order, Neighbour):
        along = us.Grid(1, 5, neighbours=True).apply(kind(1), soft)
        torch.testing.assert_close(along, us.Sequence(neighbours=True).apply(kind(0), soft))
        down = us.Grid(5, 1, neighbours=True).apply(kind(0), soft)
        torch.testing.assert_close(down, us.Sequence(neighbours=True).apply(kind(0), soft))


@pytest.mark.parametrize("masked", [False, True])
def test_centre_and_scale_equal_the_definition(masked):
    structure, size = us.Sequence(neighbours=True), 5
    costs = torch.randn(2, size, size, dtype=torch.float64)
    mask = torch.tensor([True, False, True, True, False]) if masked else None
    real = [0, 2, 3] if masked else list(range(size))
    scaled = scale_to_norm(structure.centre(costs, mask), torch.ones((), dtype=torch.float64))
    for r, neighbour in enumerate((False, True)):
        alone = reference.normalise(costs[r][real][:, real], neighbour)
        torch.testing.assert_close(scaled[r][real][:, real], alone)
        assert scaled[r].abs().sum().item() == pytest.approx(alone.abs().sum().item())


def test_centring_twice_is_centring_once():
    structure = us.Grid(2, 3, neighbours=True)
    once = structure.centre(torch.randn(4, 6, 6, dtype=torch.float64))
    torch.testing.assert_close(structure.centre(once), once)


def test_a_constant_neighbour_cost_is_nothing():
    costs = torch.full((2, 4, 4), 3.0)
    assert torch.count_nonzero(us.Sequence(neighbours=True).centre(costs)) == 0


def test_scale_to_norm():
    costs = torch.randn(3, 2, 4, 4, dtype=torch.float64, requires_grad=True)
    weight = torch.tensor([0.5, 2.0], dtype=torch.float64, requires_grad=True)
    norms = torch.linalg.matrix_norm(scale_to_norm(costs, weight))
    torch.testing.assert_close(norms, weight.expand(3, 2))
    assert gradcheck(scale_to_norm, (costs, weight))
    assert gradcheck(scale_to_norm, (costs, torch.rand(3, 2, dtype=torch.float64, requires_grad=True)))
    assert gradcheck(scale_to_norm, (costs[0, :1], torch.rand(3, 1, dtype=torch.float64, requires_grad=True)))
    zero = torch.zeros(1, 4, 4, requires_grad=True)
    scale_to_norm(zero, torch.ones(1)).sum().backward()
    assert zero.grad.isfinite().all()


@pytest.mark.parametrize("size", [5, 512, 1024])
def test_transpose_and_antisymmetric(size):
    costs = torch.randn(2, size, size, dtype=torch.float64)
    assert torch.equal(transpose(costs), costs.mT)
    assert torch.equal(antisymmetric(costs, 0.5), (costs - costs.mT) / 2)


def test_antisymmetric_gradcheck():
    assert gradcheck(lambda c: antisymmetric(c, 0.5), torch.randn(2, 3, 3, dtype=torch.float64, requires_grad=True))


@pytest.mark.parametrize(
    ("structure", "text"),
    [
        (us.Sequence(), "Sequence()"),
        (us.Sequence(neighbours=True), "Sequence(neighbours=True)"),
        (us.Grid(2, 3), "Grid(2, 3)"),
        (us.Lattice(2, 3, 4, neighbours=True), "Lattice(2, 3, 4, neighbours=True)"),
    ],
)
def test_repr_makes_it_again(structure, text):
    assert repr(structure) == text
    assert eval(text, vars(us)) == structure
    assert hash(eval(text, vars(us))) == hash(structure)
    assert structure != us.Grid(7, 7)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: us.Lattice(), ValueError, "at least one length"),
        (lambda: us.Grid(0, 3), ValueError, "at least 1, got 0"),
        (lambda: us.Grid(2, 2.5), TypeError, "whole number, got 2.5"),
        (lambda: us.Sequence(3), TypeError, "neighbours must be True or False, got 3"),
        (lambda: us.Grid(2, 3).lengths(7), ValueError, r"Grid\(2, 3\) has 6 positions .* got 7"),
    ],
)
def test_bad_input(make, error, message):
    with pytest.raises(error, match=message):
        make()
