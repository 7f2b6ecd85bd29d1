import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

import unshuffle as us
from tests import reference

module = sys.modules["unshuffle.sinkhorn"]  # the package's attribute of that name is the function


@pytest.mark.parametrize(("iterations", "temperature"), [(1, 1.0), (4, 1.0), (3, 0.3)])
def test_equals_the_definition(iterations, temperature):
    scores = torch.randn(3, 2, 5, 5, dtype=torch.float64) * 2
    soft = us.sinkhorn(scores, iterations=iterations, temperature=temperature)
    for a in range(3):
        for b in range(2):
            expected = reference.sinkhorn(scores[a, b], iterations, temperature)
            torch.testing.assert_close(soft[a, b], expected)


def test_rectangular_scores():
    scores = torch.randn(3, 5, dtype=torch.float64)
    torch.testing.assert_close(us.sinkhorn(scores), reference.sinkhorn(scores))


@pytest.mark.parametrize("spread", [0.1, 3.0, 30.0])
def test_both_forms_agree(spread):
    scores = torch.randn(4, 6, 5, dtype=torch.float64) * spread
    kernel = scores.exp()
    soft, u, v = module._scaled(kernel, 4)
    other, f, g = module._logarithmic(scores, 4)
    grad = torch.randn_like(soft)
    torch.testing.assert_close(soft, other)
    torch.testing.assert_close(u.log(), f)
    torch.testing.assert_close(v.log(), g)
    torch.testing.assert_close(
        module._scaled_backward(grad, kernel, u, v), module._logarithmic_backward(grad, scores, f, g)
    )


def test_the_quick_form_is_taken_only_where_it_is_safe(monkeypatch):
    taken = []
    for form in ("_scaled", "_logarithmic", "_scaled_backward", "_logarithmic_backward"):
        function = getattr(module, form)
        monkeypatch.setattr(module, form, lambda *a, f=function, n=form: taken.append(n) or f(*a))
    for scale in (1, 1e3):
        us.sinkhorn(torch.randn(4, 4).mul(scale).requires_grad_()).sum().backward()
    assert taken == ["_scaled", "_scaled_backward", "_logarithmic", "_logarithmic_backward"]


@given(spread=st.floats(0, 30), seed=st.integers(0, 1000), corners=st.booleans())
def test_float32_stays_close_to_float64_up_to_the_limit_of_the_quick_form(spread, seed, corners):
    generator = torch.Generator().manual_seed(seed)
    scores = (torch.rand(5, 5, generator=generator) * 2 - 1) * spread
    scores = scores.sign() * spread if corners else scores
    grad = torch.randn(5, 5, generator=generator)
    results = []
    for dtype in (torch.float32, torch.float64):
        leaf = scores.detach().clone().to(dtype).requires_grad_()
        soft = us.sinkhorn(leaf)
        soft.backward(grad.to(dtype))
        results.append((soft.detach().double(), leaf.grad.double()))
    for single, double in zip(*results, strict=True):
        torch.testing.assert_close(single, double, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("scale", [0.0, 1.0, 50.0, 200.0, 1e4])
@pytest.mark.parametrize("masked", [False, True])
def test_finite_for_any_scores_in_float32(scale, masked):
    scores = (torch.rand(8, 6, 6) * 2 - 1) * scale
    scores[0] = scale  # ties
    scores[1, 2] = -scale  # an element that no position wants
    scores.requires_grad_()
    mask = torch.rand(8, 6) > 0.3 if masked else None
    soft = us.sinkhorn(scores, mask=mask)
    soft.square().sum().backward()
    assert soft.isfinite().all()
    assert scores.grad.isfinite().all()
    if not masked:
        torch.testing.assert_close(soft.sum(-2), torch.ones(8, 6), atol=1e-2, rtol=0)


def test_extreme_scores_give_the_right_permutation():
    order = torch.randperm(6)
    scores = torch.full((6, 6), -1e4)
    scores[order, torch.arange(6)] = 1e4
    assert torch.equal(us.assign(us.sinkhorn(scores)), order)


@pytest.mark.parametrize("spread", [1.0, 1000.0])
@pytest.mark.parametrize("masked", [False, True])
def test_gradcheck(spread, masked):
    scores = torch.randn(2, 4, 4, dtype=torch.float64)
    mask = torch.tensor([[True, False, True, True], [True, True, True, True]]) if masked else None
    # Scores of a wide spread are checked at a high temperature too: the safe form, at a point with gradients
    scores = (scores * spread).requires_grad_()
    assert gradcheck(lambda x: us.sinkhorn(x, temperature=spread, mask=mask), scores)


def test_gradcheck_of_the_safe_form():
    scores = torch.randn(2, 4, 4, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda x: module._Traced.apply(x, 3), scores)


@pytest.mark.parametrize("spread", [1.0, 1000.0])
def test_the_operator_for_the_compiler(spread):
    scores = torch.randn(2, 4, 4, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda x: module._opaque(x * spread, None, 3)[0], scores, eps=1e-6 / spread)
    apart = torch.eye(4) > 0
    torch.testing.assert_close(
        module._opaque(scores, apart, 3)[0], module._Traced.apply(scores.masked_fill(apart, float("-inf")), 3)
    )
    torch.library.opcheck(module._opaque, (scores.detach().requires_grad_(), None, 2))


@pytest.mark.parametrize("count", range(6))
def test_padded_equals_unpadded(count):
    scores = torch.randn(5, 5, dtype=torch.float64)
    mask = torch.zeros(5, dtype=torch.bool)
    mask[torch.randperm(5)[:count]] = True
    scores[~mask] = float("nan")  # whatever stands in the padding
    leaf = scores.clone().requires_grad_()
    soft = us.sinkhorn(leaf, mask=mask)
    assert torch.count_nonzero(soft[~mask]) == 0
    assert torch.count_nonzero(soft[:, count:]) == 0
    soft.square().sum().backward()
    if count:
        alone = scores[mask][:, :count].clone().requires_grad_()
        expected = us.sinkhorn(alone)
        expected.square().sum().backward()
        torch.testing.assert_close(soft[mask][:, :count], expected)
        torch.testing.assert_close(leaf.grad[mask][:, :count], alone.grad)
    assert torch.count_nonzero(leaf.grad[~mask]) == 0


def test_lower_temperature_is_harder():
    scores = torch.randn(10, 7, 7)
    entropies = [torch.special.entr(us.sinkhorn(scores, temperature=t)).sum() for t in (2.0, 1.0, 0.5, 0.1)]
    assert entropies == sorted(entropies, reverse=True)


def test_backward_keeps_no_iterate():
    """What autograd saves does not grow with L by more than vectors."""

    def saved(iterations):
        sizes = []
        with torch.autograd.graph.saved_tensors_hooks(lambda t: sizes.append(t.numel()) or t, lambda t: t):
            us.sinkhorn(torch.randn(64, 64, requires_grad=True), iterations=iterations)
        return sum(sizes)

    assert saved(20) - saved(2) <= 18 * 2 * 64


def test_half_precision_is_computed_in_float32():
    assert us.sinkhorn(torch.randn(4, 4, dtype=torch.bfloat16)).dtype == torch.float32
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert us.sinkhorn(torch.randn(4, 4)).dtype == torch.float32


def test_no_element_and_one():
    assert us.sinkhorn(torch.zeros(3, 0, 0)).shape == (3, 0, 0)
    assert us.sinkhorn(torch.tensor([[7.0]])).item() == 1.0


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"scores": [[1.0]]}, TypeError, "scores must be a tensor"),
        ({"scores": torch.zeros(4)}, ValueError, r"scores must be .*, got a float32 tensor of shape \(4,\)"),
        ({"scores": torch.zeros(4, 4, dtype=torch.int64)}, TypeError, "got a int64 tensor"),
        ({"scores": torch.zeros(4, 4, dtype=torch.complex64)}, TypeError, "complex64"),
        ({"iterations": 0}, ValueError, "iterations must be at least 1, got 0"),
        ({"iterations": 1.5}, TypeError, "iterations must be a whole number"),
        ({"temperature": 0.0}, ValueError, "temperature must be above 0, got 0.0"),
        ({"temperature": -1.0}, ValueError, "temperature must be above 0"),
        ({"temperature": float("nan")}, ValueError, "temperature must be above 0"),
        ({"mask": torch.ones(4)}, TypeError, "mask must be boolean"),
        ({"mask": [True] * 4}, TypeError, "mask must be a boolean tensor"),
        ({"mask": torch.ones(3, dtype=torch.bool)}, ValueError, r"mask must be \(\*batch, N\) = \(4,\)"),
        ({"scores": torch.zeros(4, 5), "mask": torch.ones(4, dtype=torch.bool)}, ValueError, "as many positions"),
    ],
)
def test_bad_input(arguments, error, message):
    with pytest.raises(error, match=message):
        us.sinkhorn(**({"scores": torch.zeros(4, 4)} | arguments))
