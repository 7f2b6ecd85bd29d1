import pytest
import torch

import unshuffle as us
from tests.experiments.vqa.test_counting import boxes_of
from unshuffle.encoder import encode
from unshuffle.experiments.problem import Problem
from unshuffle.experiments.vqa.ban import Ban
from unshuffle.experiments.vqa.sequence import ObjectSequence, arrangement, last_cell
from unshuffle.experiments.vqa.words import Reader, put_glove

FEATURES, WORDS, ANSWERS = 6, 9, 4


def sequence(name):
    if name == "ban":
        return None
    arrange = None if name == "ban-lstm" else arrangement(3, 8, 3, neighbours=name == "ban-neighbours")
    return ObjectSequence(FEATURES, 3, 5, arrange)


def model(name):
    ban = Ban(FEATURES, WORDS, ANSWERS, hidden=7, word_width=5, glimpses=2, sequence=sequence(name))
    return ban.double().eval()


MODELS = ["ban", "ban-lstm", "ban-po-u", "ban-neighbours"]


def batch(size=6, count=3, length=5):
    features = torch.randn(count, size, FEATURES, dtype=torch.float64)
    tokens = torch.randint(1, WORDS, (count, length))
    return features, boxes_of(count, size), torch.ones(count, size, dtype=torch.bool), tokens


@pytest.mark.parametrize("name", MODELS)
def test_padding_changes_nothing(name):
    """Neither of objects nor of words, whatever stands in it: scores and the gradients of every weight."""
    ban = model(name)
    features, boxes, mask, tokens = batch()
    alone = ban(features, boxes, mask, tokens)
    weights = list(ban.parameters())
    expected = torch.autograd.grad(alone.square().sum(), weights)
    padded = [torch.cat([x, 100 * torch.randn_like(x)], 1) for x in (features, boxes)]
    objects = torch.cat([mask, ~mask], 1)
    longer = torch.cat([tokens, torch.zeros(3, 4, dtype=torch.long)], 1)
    found = ban(*padded, objects, longer)
    torch.testing.assert_close(found, alone)
    for mine, theirs in zip(torch.autograd.grad(found.square().sum(), weights), expected, strict=True):
        torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize("name", MODELS)
def test_sets_of_different_sizes_in_one_batch(name):
    ban = model(name)
    features, boxes, mask, tokens = batch()
    mask[0, 2:], mask[1, 1:], tokens[2, 3:] = False, False, 0
    together = ban(features, boxes, mask, tokens)
    for row, (size, length) in enumerate([(2, 5), (1, 5), (6, 3)]):
        own = slice(row, row + 1)
        alone = ban(features[own, :size], boxes[own, :size], mask[own, :size], tokens[own, :length])
        torch.testing.assert_close(together[own], alone)


@pytest.mark.parametrize("name", MODELS)
def test_empty_sets_give_no_nan(name):
    ban = model(name)
    features, boxes, mask, tokens = batch()
    mask[0] = False
    scores = ban(features, boxes, mask, tokens)
    scores.sum().backward()
    assert scores.isfinite().all()
    assert all(p.grad.isfinite().all() for p in ban.parameters() if p.grad is not None)


@pytest.mark.parametrize("name", MODELS)
def test_which_models_see_the_given_order(name):
    ban = model(name)
    features, boxes, mask, tokens = batch()
    shuffle = torch.randperm(6)
    same = torch.allclose(
        ban(features, boxes, mask, tokens), ban(features[:, shuffle], boxes[:, shuffle], mask, tokens)
    )
    assert same == (name != "ban-lstm")


@pytest.mark.parametrize("name", MODELS)
def test_every_weight_learns(name):
    ban = model(name)
    ban(*batch(12)).square().sum().backward()
    unused = {n for n, p in ban.named_parameters() if p.grad is None or not p.grad.any()}
    assert not unused


def test_the_glimpses_share_the_sequence():
    ban = model("ban-po-u")
    assert sum(isinstance(module, us.Arrange) for module in ban.modules()) == 1
    assert sum(isinstance(module, torch.nn.LSTM) for module in ban.modules()) == 1
    assert len(ban.arranged) == 2


def test_the_sizes_of_the_paper():
    ban = Ban(2048, 100, 3129, sequence=ObjectSequence(2048, 8, 128, arrangement(8, 128, 3, neighbours=False)))
    assert ban.attention.objects[1].weight.shape == (3 * 1280, 2048)
    assert len(ban.pooling) == 8
    assert ban.sequence.rnn.input_size == 13
    assert ban.sequence.arrange.steps == 3
    assert ban.sequence.arrange.start is None
    assert ban.sequence.arrange.cost.hidden == (128,)
    assert ban.classifier[2][0].out_features == 3129


def test_an_element_is_its_attention_its_box_and_its_projected_features():
    reader = sequence("ban-lstm").double()
    features, boxes, mask, _ = batch()
    logits = torch.randn(3, 2, 6, dtype=torch.float64)
    found = reader(features, boxes, logits, mask)
    elements = torch.cat([logits[:, 1, :, None], boxes, reader.project(features)], -1)
    _, (_, cell) = reader.rnn(elements * logits[:, 1, :, None].sigmoid())
    torch.testing.assert_close(found[:, 1], cell[0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_last_cell_is_that_of_packed_sequences(dtype):
    rnn = torch.nn.LSTM(3, 4, batch_first=True).to(dtype)
    x = torch.randn(5, 6, 3, dtype=dtype, requires_grad=True)
    mask = torch.arange(6) < torch.tensor([[6], [1], [3], [5], [0]])
    found, expected = last_cell(x, rnn, mask), encode(x, rnn, mask)
    torch.testing.assert_close(found, expected)
    weights = [x, *rnn.parameters()]
    for mine, theirs in zip(*(torch.autograd.grad(y.square().sum(), weights) for y in (found, expected)), strict=True):
        torch.testing.assert_close(mine, theirs)


def test_glove(tmp_path):
    path = tmp_path / "glove.txt"
    path.write_text("cat 1 2 3\nunseen 7 8 9\ndog 4 5 6e-1\n")
    reader = Reader(6, 3, 4)
    before = reader.embedding.weight.detach().clone()
    assert put_glove(reader.embedding, path, {"cat": 2, "dog": 3, "owl": 4}) == 2
    assert reader.embedding.weight[2].tolist() == [1, 2, 3]
    assert reader.embedding.weight[3].tolist() == pytest.approx([4, 5, 0.6])
    assert torch.equal(reader.embedding.weight[4], before[4])
    for content, message in [
        ("cat 1 2\n", "line 1: 2 numbers, but a word's vector has 3 here"),
        ("cat 1 2 x\n", "line 1: could not convert"),
        ("x 1 2 3\n", "has none of the 1 words"),
    ]:
        path.write_text(content)
        with pytest.raises(Problem, match=message):
            put_glove(reader.embedding, path, {"cat": 2})
    with pytest.raises(Problem, match="cannot be read as a GloVe file"):
        put_glove(reader.embedding, tmp_path / "none.txt", {"cat": 2})
