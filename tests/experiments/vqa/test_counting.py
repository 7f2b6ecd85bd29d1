import pytest
import torch

from tests.experiments.vqa import loops
from unshuffle.experiments.vqa.counting import Counter, Monotone, overlap, soft_one_hot


def boxes_of(*shape):
    corner = torch.rand(*shape, 2, dtype=torch.float64)
    return torch.cat([corner, corner + 0.1 + torch.rand(*shape, 2, dtype=torch.float64)], -1)


def counter(objects=10):
    module = Counter(objects).double()
    for f in module.f:
        torch.nn.init.normal_(f.weight)
    return module


@pytest.mark.parametrize(("size", "objects"), [(14, 10), (7, 10), (1, 10), (6, 3)])
def test_the_definition_with_loops(size, objects):
    module = counter(objects)
    logits, boxes = 2 * torch.randn(3, size, dtype=torch.float64), boxes_of(3, size)
    found = module(logits, boxes, torch.ones(3, size, dtype=torch.bool))
    for row in range(3):
        expected = loops.count([f.weight for f in module.f], logits[row].tolist(), boxes[row].tolist(), objects)
        torch.testing.assert_close(found[row], torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize("size", [4, 12])
def test_padding_changes_nothing(size):
    module, whole = counter(), size + 9
    logits, boxes = torch.randn(2, whole, dtype=torch.float64), boxes_of(2, whole)
    logits[:, size:] = 50.0  # louder than anything real
    mask = (torch.arange(whole) < size).expand(2, -1)
    padded, alone = logits.clone().requires_grad_(), logits[:, :size].clone().requires_grad_()
    found = module(padded, boxes, mask)
    expected = module(alone, boxes[:, :size], mask[:, :size])
    torch.testing.assert_close(found, expected)
    (grad,) = torch.autograd.grad(found.square().sum(), padded)
    (expected_grad,) = torch.autograd.grad(expected.square().sum(), alone)
    torch.testing.assert_close(grad[:, :size], expected_grad)
    assert not grad[:, size:].any()


def test_an_empty_set_counts_nothing():
    found = counter()(torch.randn(1, 5, dtype=torch.float64), boxes_of(1, 5), torch.zeros(1, 5, dtype=torch.bool))
    assert found.isfinite().all()
    assert found[0, 1:].abs().max() < 1e-6


def test_ideal_cases_are_counted_right():
    """Hard attention, and boxes that are the same or apart: exact, as in the paper's section 4."""
    far = torch.tensor([[k, k, k + 0.5, k + 0.5] for k in range(4)], dtype=torch.float64)
    module = Counter(10).double()
    for picked, boxes, number in [
        ([1, 1, 1, 0], far, 3),
        ([1, 1, 1, 1], far[[0, 0, 1, 1]], 2),  # two proposals of each of two objects
        ([1, 1, 1, 0], far[[2, 2, 2, 1]], 1),
        ([0, 0, 0, 0], far, 0),
    ]:
        logits = 60 * torch.tensor([picked], dtype=torch.float64) - 30
        found = module(logits, boxes[None], torch.ones(1, 4, dtype=torch.bool))
        assert found.argmax().item() == number
        torch.testing.assert_close(found[0] / found.sum(), torch.eye(11, dtype=torch.float64)[number])


def test_monotone_functions():
    f = Monotone(16).double()
    x = torch.linspace(0, 1, 101, dtype=torch.float64)
    torch.testing.assert_close(f(x), x)
    torch.nn.init.normal_(f.weight)
    y = f(x)
    assert (y.diff() >= 0).all()
    torch.testing.assert_close(y[[0, -1]], torch.tensor([0.0, 1.0], dtype=torch.float64))
    torch.testing.assert_close(y.tolist(), [loops.monotone(f.weight, v) for v in x.tolist()])
    assert repr(f) == "Monotone(pieces=16)"


def test_gradients():
    f = Monotone(5).double()
    torch.nn.init.normal_(f.weight)
    x = torch.rand(3, 4, dtype=torch.float64, requires_grad=True)

    def of(x, weight):
        return torch.func.functional_call(f, {"weight": weight}, x)

    assert torch.autograd.gradcheck(of, (x, f.weight.detach().requires_grad_()))


def test_overlap():
    boxes = torch.tensor([[0, 0, 2, 2], [1, 0, 3, 2], [5, 5, 6, 6], [0, 0, 0, 0]], dtype=torch.float64)
    found = overlap(boxes)
    assert found[0].tolist() == pytest.approx([1, 1 / 3, 0, 0])
    for i in range(4):
        assert found[i].tolist() == pytest.approx([loops.iou(boxes[i].tolist(), other) for other in boxes.tolist()])


def test_soft_one_hot():
    found = soft_one_hot(torch.tensor([0.0, 2.25, 9.0]), 4)
    assert found.tolist() == [[1, 0, 0, 0, 0], [0, 0, 0.75, 0.25, 0], [0, 0, 0, 0, 1]]
