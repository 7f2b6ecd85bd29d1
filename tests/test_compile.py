"""`torch.compile(fullgraph=True)` and `torch.export`: no graph break, the same numbers, forward and backward."""

import shutil
import sys
import sysconfig
from pathlib import Path

import pytest
import torch

import unshuffle as us


def layer(structure, size, hidden, *, start=True):
    cost = us.PairwiseCost(3, hidden, structure)
    start = us.LinearStart(3, size) if start else None
    return us.Arrange(structure, cost, start=start, steps=2, iterations=2)  # small, because compiling takes seconds


def results(model, layer, x, mask):
    x = x.clone().requires_grad_()
    layer.zero_grad()
    arrangement = model(x, mask)
    arrangement.elements.square().sum().backward()
    return [arrangement.soft, arrangement.elements, arrangement.costs, x.grad, *(p.grad for p in layer.parameters())]


CASES = {
    "grid with neighbours, two hidden layers": (us.Grid(2, 3, neighbours=True), 6, (8, 4), False),
    "masked sequence": (us.Sequence(neighbours=True), 5, 8, True),
    "more positions than are traced": (us.Sequence(), 70, 8, False),
}


COMPILER = any(map(shutil.which, ("c++", "g++", "clang++")))
HEADERS = Path(sysconfig.get_path("include"), "Python.h").exists()


needs_compiler = pytest.mark.skipif(
    not (COMPILER and HEADERS), reason="torch.compile needs a C++ compiler and Python's headers"
)


@needs_compiler
@pytest.mark.parametrize("case", CASES)
def test_compiled_equals_eager(case):
    structure, size, hidden, masked = CASES[case]
    module = layer(structure, size, hidden)
    x = torch.randn(3, size, 3)
    mask = torch.rand(3, size) > 0.3 if masked else None
    torch.compiler.reset()
    compiled = torch.compile(module, fullgraph=True)
    expected = results(module, module, x, mask)
    for found, wanted in zip(results(compiled, module, x, mask), expected, strict=True):
        torch.testing.assert_close(found, wanted, atol=1e-4, rtol=1e-3)


@needs_compiler
@pytest.mark.parametrize("masked", [False, True])
def test_compiled_once_for_every_size(masked):
    """The second size makes the compiler look for code that serves all of them."""
    module = layer(us.Sequence(), 9, 4, start=False)
    torch.compiler.reset()
    compiled = torch.compile(module, fullgraph=True)
    for sets, size in ((3, 5), (4, 6), (2, 9)):
        x, mask = torch.randn(sets, size, 3), torch.rand(sets, size) > 0.3 if masked else None
        expected = results(module, module, x, mask)
        for found, wanted in zip(results(compiled, module, x, mask), expected, strict=True):
            torch.testing.assert_close(found, wanted, atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("hidden", [8, (8, 4)])
def test_exported_equals_eager(hidden):
    module, x = layer(us.Grid(2, 3, neighbours=True), 6, hidden).eval(), torch.randn(3, 6, 3)
    exported = torch.export.export(module, (x,)).module()
    arrangement, expected = exported(x), module(x)
    assert isinstance(arrangement, us.Arrangement)
    torch.testing.assert_close(arrangement.soft, expected.soft)
    torch.testing.assert_close(arrangement.elements, expected.elements)
    assert torch.equal(arrangement.order, expected.order)
    assert repr(arrangement) == repr(expected)


def test_exports_for_any_batch():
    module = layer(us.Sequence(), 5, 8).eval()
    batch = torch.export.Dim("batch", min=2, max=64)
    exported = torch.export.export(module, (torch.randn(4, 5, 3),), dynamic_shapes={"x": {0: batch}})
    x = torch.randn(9, 5, 3)
    torch.testing.assert_close(exported.module()(x).soft, module(x).soft)


def test_what_the_compiler_traces_is_what_eager_computes():
    """The fused forms of the pair network, run without the compiler."""
    costs = sys.modules["unshuffle.costs"]
    own, other = torch.randn(2, 4, 5, dtype=torch.float64), torch.randn(2, 4, 5, dtype=torch.float64)
    out, grad = torch.randn(3, 5, dtype=torch.float64), torch.randn(2, 4, 3, 4, dtype=torch.float64)

    def both():
        through = (costs._through_active(compare, own, other, grad) for compare in (torch.gt, torch.lt))
        return costs._Shallow.apply(own, other, out), *through

    blocks = both()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.compiler, "is_compiling", lambda: True)
        fused = both()
    for one, another in zip(blocks, fused, strict=True):
        torch.testing.assert_close(one, another)
