import torch

from tests.experiments.vqa import loops
from unshuffle.experiments.vqa.bilinear import BilinearAttention, BilinearPooling, joint_softmax, linear

X, Y = torch.randn(2, 4, 6, dtype=torch.float64), torch.randn(2, 3, 5, dtype=torch.float64)


def test_attention_with_loops():
    module = BilinearAttention(6, 5, 2, glimpses=3, rank=3).double()
    found = module(X, Y)
    assert found.shape == (2, 3, 4, 3)
    for row in range(2):
        x, y = module.objects(X[row]), module.words(Y[row])
        assert x.shape == (4, 6)  # rank · hidden
        expected = loops.attention_logits(x, y, module.weight[:, 0], module.bias[:, 0, 0])
        torch.testing.assert_close(found[row], expected)


def test_pooling_with_loops():
    module = BilinearPooling(6, 5, 7).double()
    attention = torch.rand(2, 4, 3, dtype=torch.float64)
    found = module(X, Y, attention)
    for row in range(2):
        expected = loops.pooled(module.objects(X[row]), module.words(Y[row]), attention[row])
        torch.testing.assert_close(found[row], expected)


def test_joint_softmax_is_over_real_pairs():
    logits = torch.randn(2, 3, 4, 5)
    pairs = torch.zeros(2, 1, 4, 5, dtype=torch.bool)
    pairs[0, :, :2, :3] = True
    attention = joint_softmax(logits, pairs)
    expected = logits[0, :, :2, :3].flatten(1).softmax(-1).view(3, 2, 3)
    torch.testing.assert_close(attention[0, :, :2, :3], expected)
    torch.testing.assert_close(attention[0].sum((1, 2)), torch.ones(3))
    assert not attention[1].any()  # nothing is real


def test_linear_maps_have_one_length():
    layer = linear(4, 3, dropout=0.5)
    assert [type(part).__name__ for part in layer] == ["Dropout", "ParametrizedLinear", "ReLU"]
    original = layer[1].parametrizations.weight
    assert original.original0.numel() == 1
    with torch.no_grad():
        original.original0.fill_(2.0)
    torch.testing.assert_close(layer[1].weight.norm(), torch.tensor(2.0))
