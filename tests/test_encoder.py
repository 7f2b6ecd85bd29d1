import pytest
import torch
from torch import nn
from torch.autograd import gradcheck

import unshuffle as us


def encoder(rnn):
    structure = us.Sequence()
    return us.SetEncoder(us.Arrange(structure, us.PairwiseCost(3, 8, structure), steps=3), rnn).double()


RNNS = [
    nn.LSTM(3, 5, batch_first=True),
    nn.GRU(3, 5),
    nn.LSTM(3, 4, num_layers=2, bidirectional=True, batch_first=True),
]


@pytest.mark.parametrize("rnn", RNNS, ids=repr)
def test_is_the_last_state_over_the_arranged_elements(rnn):
    model, x = encoder(rnn), torch.randn(2, 6, 3, dtype=torch.float64)
    for item, vector in zip(x, model(x), strict=True):
        elements = model.arrange(item).elements
        _, state = rnn(elements)
        last = state[1] if isinstance(rnn, nn.LSTM) else state
        expected = last[-2:].flatten() if rnn.bidirectional else last[-1]
        torch.testing.assert_close(vector, expected)


@pytest.mark.parametrize("rnn", RNNS, ids=repr)
def test_invariant_and_padding_changes_nothing(rnn):
    model, x = encoder(rnn), torch.randn(2, 6, 3, dtype=torch.float64)
    order = torch.randperm(6)
    torch.testing.assert_close(model(x[:, order]), model(x))
    mask = torch.tensor([[True, False, True, True, False, True], [False] * 6])
    vectors = model(x, mask)
    torch.testing.assert_close(vectors[0], model(x[0, mask[0]]))
    assert torch.count_nonzero(vectors[1]) == 0
    vectors.sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("masked", [False, True])
def test_gradcheck(masked):
    model, x = encoder(nn.LSTM(3, 5, batch_first=True)), torch.randn(2, 4, 3, dtype=torch.float64)
    mask = torch.tensor([[True, False, True, True], [False] * 4]) if masked else None
    assert gradcheck(lambda x: model(x, mask), x.requires_grad_())


def test_any_batch():
    model, x = encoder(RNNS[0]), torch.randn(2, 3, 6, 3, dtype=torch.float64)
    assert model(x).shape == (2, 3, 5)
    torch.testing.assert_close(model(x)[1, 2], model(x[1, 2]))


def test_under_autocast():
    model = encoder(nn.LSTM(3, 5, batch_first=True)).float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        vector = model(torch.randn(2, 6, 3))
    assert vector.isfinite().all()


def test_bad_input():
    structure = us.Sequence()
    arrange = us.Arrange(structure, us.PairwiseCost(3, 8, structure))
    with pytest.raises(TypeError, match=r"rnn must be an nn.LSTM or nn.GRU"):
        us.SetEncoder(arrange, nn.RNN(3, 5))
    with pytest.raises(TypeError, match="arrange must be an Arrange layer"):
        us.SetEncoder(nn.Identity(), nn.LSTM(3, 5))
