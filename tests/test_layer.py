import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

import unshuffle as us

FEATURES = 3


def layer(structure, *, start=False, steps=3, hidden=8, positions=6):
    cost = us.PairwiseCost(FEATURES, hidden, structure)
    return us.Arrange(structure, cost, start=us.LinearStart(FEATURES, positions) if start else None, steps=steps)


@given(seed=st.integers(0, 10_000), start=st.booleans(), steps=st.integers(0, 4), neighbours=st.booleans())
def test_the_order_of_the_elements_does_not_matter(seed, start, steps, neighbours):
    torch.manual_seed(seed)
    model = layer(us.Grid(2, 3, neighbours=neighbours), start=start, steps=steps).double()
    x, order = torch.randn(2, 6, FEATURES, dtype=torch.float64), torch.randperm(6)
    one, other = model(x), model(x[:, order])
    torch.testing.assert_close(other.soft, one.soft[:, order])
    torch.testing.assert_close(other.elements, one.elements)


@pytest.mark.parametrize("start", [False, True])
@pytest.mark.parametrize("neighbours", [False, True])
@pytest.mark.parametrize("count", range(7))
def test_padded_equals_unpadded(start, neighbours, count):
    model = layer(us.Sequence(neighbours), start=start).double()
    alone = copy.deepcopy(model)
    x = torch.randn(6, FEATURES, dtype=torch.float64)
    mask = torch.zeros(6, dtype=torch.bool)
    mask[torch.randperm(6)[:count]] = True
    few = x[mask].clone().requires_grad_()
    x[~mask] = float("nan")  # whatever stands in the padding
    x.requires_grad_()
    weight = torch.randn(6, FEATURES, dtype=torch.float64)
    result = model(x, mask)
    (result.elements * weight).sum().backward()
    assert result.elements.isfinite().all()
    assert torch.count_nonzero(result.elements[count:]) == 0
    assert torch.count_nonzero(x.grad[~mask]) == 0
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)
    if count:
        expected = alone(few)
        (expected.elements * weight[:count]).sum().backward()
        torch.testing.assert_close(result.elements[:count], expected.elements)
        torch.testing.assert_close(result.soft[mask][:, :count], expected.soft)
        torch.testing.assert_close(x.grad[mask], few.grad)
        for padded, unpadded in zip(model.parameters(), alone.parameters(), strict=True):
            torch.testing.assert_close(padded.grad, unpadded.grad)


@pytest.mark.parametrize("neighbours", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_gradcheck(neighbours, masked):
    model = layer(us.Sequence(neighbours), start=True, steps=2, hidden=(4, 3)).double()
    x = torch.randn(2, 4, FEATURES, dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[True, False, True, True], [False, True, False, False]]) if masked else None
    assert gradcheck(lambda x: (model(x, mask).elements, model(x, mask).trajectory, model(x, mask).entropy()), x)


def test_the_papers_models_are_configurations():
    x = torch.randn(4, 6, FEATURES)
    uniform, linear = layer(us.Sequence(), steps=6), layer(us.Sequence(), start=True, steps=6)
    assign = layer(us.Sequence(), start=True, steps=0)
    torch.testing.assert_close(uniform(x).trajectory[0], torch.full((4, 6, 6), 1 / 6))
    torch.testing.assert_close(linear(x).trajectory[0], us.sinkhorn(linear.start(x)))
    torch.testing.assert_close(assign(x).soft, us.sinkhorn(assign.start(x)))


def test_learns_to_sort():
    """A hundred steps of training must do what a random layer does not."""
    structure = us.Sequence()
    model = us.Arrange(structure, us.PairwiseCost(1, 16, structure), steps=6)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.1)

    def sorted_sets():
        x = torch.rand(256, 5, 1)
        return (model(x).hard() == x.sort(1).values).all(-1).all(-1).float().mean().item()

    before = sorted_sets()
    for _ in range(100):
        x = torch.rand(256, 5, 1)
        loss = (model(x).elements - x.sort(1).values).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert before < 0.5
    assert sorted_sets() > 0.98


def test_linear_start_is_clipped_and_takes_smaller_sets():
    start = us.LinearStart(FEATURES, 6)
    with torch.no_grad():
        start.weight.mul_(1000)
    x = torch.randn(5, FEATURES)
    assert start(x).shape == (5, 5)
    assert start(x).abs().max() == 10
    torch.testing.assert_close(start(x), (x @ start.weight[:5].T).clamp(-10, 10))


def test_every_parameter_gets_a_gradient():
    model = layer(us.Grid(2, 3, neighbours=True), start=True)
    model(torch.randn(4, 6, FEATURES)).elements.square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad.abs().sum() > 0, name


@pytest.mark.parametrize("hidden", [8, (8, 4)])
def test_bf16_autocast_trains_and_stays_close(hidden):
    model = layer(us.Grid(2, 3, neighbours=True), start=True, hidden=hidden)
    x = torch.randn(4, 6, FEATURES)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        result = model(x)
    assert result.soft.dtype == result.elements.dtype == torch.float32
    torch.testing.assert_close(result.soft, model(x).soft, atol=0.1, rtol=0.1)
    result.elements.square().sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("case", ["ties", "one element", "huge", "empty set"])
def test_finite(case):
    structure = us.Sequence(neighbours=True)
    model = layer(structure, start=True)
    x, mask = torch.randn(2, 6, FEATURES), None
    if case == "ties":
        x = torch.ones(2, 6, FEATURES)
    if case == "one element":
        x = torch.randn(2, 1, FEATURES)
    if case == "huge":
        x = x * 1e4
    if case == "empty set":
        mask = torch.zeros(2, 6, dtype=torch.bool)
        mask[0, 1] = True
    x.requires_grad_()
    result = model(x, mask)
    result.elements.square().sum().backward()
    for tensor in (result.elements, result.entropy(), x.grad, *(p.grad for p in model.parameters())):
        assert tensor.isfinite().all()
    if case == "one element":
        torch.testing.assert_close(result.elements, x)
    if case == "ties":
        torch.testing.assert_close(result.elements, torch.ones(2, 6, FEATURES))


def test_ties_compare_as_exactly_nothing():
    """Rounding must not tell equal elements apart: normalised, it would be all that there is."""
    for size in (3, 25, 64, 100):
        structure = us.Sequence()
        x = torch.randn(3, 1, 7).expand(3, size, 7).contiguous()
        assert torch.count_nonzero(us.PairwiseCost(7, 33, structure)(x)) == 0


def test_repr():
    text = repr(layer(us.Grid(2, 3), start=True, steps=4))
    assert "Grid(2, 3), steps=4, iterations=4, temperature=1" in text
    assert "(start): LinearStart(features=3, positions=6)" in text


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda m: m(torch.zeros(2, 5, FEATURES)), ValueError, "6 positions and needs exactly as many elements, got 5"),
        (lambda m: m(torch.zeros(2, 6, 4)), ValueError, r"x must be \(\*batch, N, 3\)"),
        (lambda m: m(torch.zeros(6)), ValueError, r"x must be \(\*batch, N, features\)"),
        (lambda m: m(torch.zeros(2, 6, FEATURES).long()), TypeError, "int64"),
        (lambda m: m(torch.zeros(2, 6, FEATURES), torch.ones(2, 6)), TypeError, "mask must be boolean"),
        (lambda m: m(torch.zeros(2, 6, FEATURES), torch.ones(2, 6) > 0), ValueError, "takes no mask"),
        (lambda m: us.Arrange(us.Sequence(), "cost"), TypeError, "cost must be a module"),
        (lambda m: us.Arrange("sequence", m.cost), TypeError, "structure must be"),
        (lambda m: us.Arrange(us.Sequence(), m.cost, start=3), TypeError, "start must be a module"),
        (lambda m: us.Arrange(us.Sequence(), m.cost, steps=-1), ValueError, "steps must be at least 0"),
        (lambda m: us.Arrange(us.Sequence(), m.cost, temperature=0), ValueError, "temperature must be above 0"),
        (lambda m: us.LinearStart(FEATURES, 4)(torch.zeros(6, FEATURES)), ValueError, "6 elements, .* 4 positions"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call(layer(us.Grid(2, 3)))
