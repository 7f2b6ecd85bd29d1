import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

import unshuffle as us
from benchmarks import literal
from tests import reference
from unshuffle import costs as module

CASES = [
    (us.Sequence(), 5, 7),
    (us.Sequence(neighbours=True), 4, (6, 3)),
    (us.Grid(2, 3), 6, (4,)),
    (us.Grid(3, 2, neighbours=True), 6, (5, 4, 3)),
    (us.Lattice(2, 1, 2, neighbours=True), 4, 3),
]


def layers(cost):
    """The first layer as it maps [a; b], then the rest, for the reference."""
    of_first, of_second = cost.pair.chunk(2, 0)
    return [(torch.cat([of_first, of_second], 1), cost.bias), *((layer.weight, layer.bias) for layer in cost.layers)]


def randomised(structure, features, hidden):
    cost = us.PairwiseCost(features, hidden, structure).double()
    for parameter in cost.parameters():
        torch.nn.init.normal_(parameter)
    return cost


@pytest.fixture(params=[None, 1, 40], ids=["one block", "blocks of a row", "blocks of some rows"])
def chunk(request, monkeypatch):
    if request.param:
        monkeypatch.setattr(module, "CHUNK", request.param)


@pytest.mark.parametrize(("structure", "size", "hidden"), CASES, ids=repr)
@pytest.mark.usefixtures("chunk")
def test_equals_the_definition(structure, size, hidden):
    cost = randomised(structure, 3, hidden)
    x = torch.randn(4, size, 3, dtype=torch.float64)
    orders = len(structure.relations) // (1 + structure.neighbours)
    for item, costs in zip(x, cost(x), strict=True):
        torch.testing.assert_close(costs, reference.pairwise(item, layers(cost), cost.out.weight, orders))


@pytest.mark.parametrize(("structure", "size", "hidden"), CASES, ids=repr)
@pytest.mark.usefixtures("chunk")
def test_gradcheck(structure, size, hidden):
    cost = randomised(structure, 2, hidden)
    names = [name for name, _ in cost.named_parameters()]

    def call(x, *parameters):
        return torch.func.functional_call(cost, dict(zip(names, parameters, strict=True)), (x,))

    x = torch.randn(3, size, 2, dtype=torch.float64, requires_grad=True)
    assert gradcheck(call, (x, *cost.parameters()))


@given(seed=st.integers(0, 1000), chunk=st.integers(1, 300), sets=st.integers(1, 4), size=st.integers(1, 6))
def test_blocks_cover_every_pair_once(seed, chunk, sets, size):
    torch.manual_seed(seed)
    own, other, sums = torch.randn(sets, size, 3), torch.randn(sets, size, 3), torch.zeros(sets, size, size, 3)
    before, module.CHUNK = module.CHUNK, chunk
    try:
        for mine, theirs, result in module._blocks(3, (own,), (other,), (sums,)):
            result.add_((mine + theirs).view(-1, size, 3))
    finally:
        module.CHUNK = before
    assert torch.equal(sums, own.unsqueeze(2) + other.unsqueeze(1))


def test_the_literal_version_computes_the_same():
    slow = literal.PairwiseCost(3, 8, 2).double()
    fast = us.PairwiseCost(3, 8, us.Grid(2, 3)).double()
    with torch.no_grad():
        fast.pair.copy_(torch.cat(slow.f[0].weight.chunk(2, 1), 0))
        fast.bias.copy_(slow.f[0].bias)
        fast.out.weight.copy_(slow.f[2].weight)
    x = torch.randn(4, 6, 3, dtype=torch.float64)
    torch.testing.assert_close(fast(x), slow(x))


def test_order_costs_are_exactly_antisymmetric():
    costs = us.PairwiseCost(3, 16, us.Grid(2, 3, neighbours=True))(torch.randn(5, 6, 3))
    order, neighbour = costs[:, :2], costs[:, 2:]
    assert torch.equal(order, -order.mT)
    assert not torch.allclose(neighbour, -neighbour.mT)


def test_permuting_the_elements_permutes_the_costs():
    cost, x, order = randomised(us.Sequence(), 3, (5, 4)), torch.randn(2, 6, 3, dtype=torch.float64), torch.randperm(6)
    torch.testing.assert_close(cost(x[:, order]), cost(x)[..., order, :][..., order])


def test_any_number_of_batch_dimensions():
    cost, x = randomised(us.Grid(2, 2), 3, 5), torch.randn(2, 3, 4, 3, dtype=torch.float64)
    torch.testing.assert_close(cost(x)[1, 2], cost(x[1, 2]))
    assert cost(x[0, 0]).shape == (2, 4, 4)


def test_xavier_at_the_start():
    cost = us.PairwiseCost(100, 300, us.Sequence())
    bound = (6 / (200 + 300)) ** 0.5
    assert 0.99 * bound < cost.pair.abs().max() <= bound
    assert torch.count_nonzero(cost.bias) == 0


@pytest.mark.parametrize("hidden", [16, (16, 8)])
def test_the_hidden_layer_is_never_there_for_the_whole_batch(hidden):
    """Neither what autograd saves nor any single tensor comes near batch · N · N · hidden numbers."""
    cost = us.PairwiseCost(2, hidden, us.Sequence())
    x = torch.randn(8, 100, 2, requires_grad=True)
    largest = 0

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            nonlocal largest
            result = func(*args, **(kwargs or {}))
            for tensor in result if isinstance(result, (tuple, list)) else [result]:
                if isinstance(tensor, torch.Tensor):
                    largest = max(largest, tensor.numel())
            return result

    with Watch():
        cost(x).square().sum().backward()
    assert largest <= module.CHUNK < 8 * 100 * 100 * 16


@pytest.mark.parametrize("hidden", [8, (8, 4)])
def test_under_autocast(hidden):
    cost, x = us.PairwiseCost(3, hidden, us.Sequence()), torch.randn(2, 5, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        costs = cost(x)
    costs.float().square().sum().backward()
    torch.testing.assert_close(costs.float(), cost(x), atol=0.1, rtol=0.1)
    assert all(p.grad.isfinite().all() and p.grad.abs().sum() > 0 for p in cost.parameters())


def test_repr():
    text = repr(us.PairwiseCost(3, 16, us.Grid(2, 3)))
    assert "features=3, hidden=(16,), structure=Grid(2, 3)" in text


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: us.PairwiseCost(3, 4, "grid"), TypeError, "structure must be"),
        (lambda: us.PairwiseCost(0, 4, us.Sequence()), ValueError, "features must be at least 1"),
        (lambda: us.PairwiseCost(3, (), us.Sequence()), ValueError, "empty tuple"),
        (lambda: us.PairwiseCost(3, (4, 0), us.Sequence()), ValueError, "hidden must be at least 1"),
        (lambda: us.PairwiseCost(3, 4, us.Sequence())(torch.zeros(5, 4)), ValueError, r"x must be \(\*batch, N, 3\)"),
        (lambda: us.PairwiseCost(3, 4, us.Sequence())(torch.zeros(3)), ValueError, r"x must be \(\*batch, N, 3\)"),
    ],
)
def test_bad_input(make, error, message):
    with pytest.raises(error, match=message):
        make()
