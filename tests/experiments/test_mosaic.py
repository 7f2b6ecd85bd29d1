import pytest
import torch
from torch.nn.functional import log_softmax

import unshuffle as us
from benchmarks import literal
from unshuffle import tiles
from unshuffle.assembler import TileEncoder
from unshuffle.assignment import gather, permutation
from unshuffle.experiments import data, mosaic
from unshuffle.experiments.mosaic import Mosaic, MosaicTask, Puzzles, settings
from unshuffle.experiments.problem import Problem

CPU = torch.device("cpu")


def task(hub, **chosen):
    return MosaicTask(settings(**chosen), CPU, hub)


def first_batch(task, size=8):
    return task.batch(0, 0, size, slice(None))


def test_defaults_are_the_papers():
    config = Mosaic()
    assert (config.steps, config.hidden, config.channels) == (4, 64, 64)
    assert (config.lr, config.batch_size, config.epochs) == (1e-3, 32, 20)
    assert settings(model="po-u") == Mosaic(model="po-u")
    assert settings(dataset="tiny-imagenet", model="po-u").hidden == 128
    assert settings(model="neighbours").steps == 8
    assert settings(model="neighbours", steps=5).steps == 5


def test_puzzles_are_the_image_cut_and_shuffled(hub):
    t = task(hub, dataset="cifar10", side=3)
    batch = first_batch(t)
    assert batch.tiles.shape == (8, 9, 3, 11, 11)
    chosen = torch.randperm(t.items, generator=mosaic.generator(0, 0))[:8]
    images = tiles.normalised(t.train[chosen], t.mean, t.std)
    placed = gather(batch.tiles.flatten(2), batch.order()).view_as(batch.tiles)
    torch.testing.assert_close(tiles.join(placed, 3, 3), images)
    assert len({tuple(row) for row in batch.positions.tolist()}) > 1


def test_a_batch_is_a_function_of_seed_and_step(hub):
    t = task(hub, side=2)
    whole = t.batch(2, 32, 32, slice(None))
    halves = [task(hub, side=2).batch(2, 32, 32, part) for part in (slice(0, 16), slice(16, 32))]
    assert torch.equal(whole.tiles, torch.cat([half.tiles for half in halves]))
    assert torch.equal(whole.positions, torch.cat([half.positions for half in halves]))
    assert not torch.equal(whole.tiles, t.batch(3, 32, 32, slice(None)).tiles)


@pytest.mark.parametrize("side", [2, 5])
def test_the_literal_version_prepares_the_same(hub, side):
    t = task(hub, dataset="cifar10", side=side)
    batch = first_batch(t)
    train, _ = data.load("cifar10", root=hub)
    chosen = torch.randperm(t.items, generator=mosaic.generator(0, 0))[:8]
    size = t.tile * side
    shuffled, placed = literal.prepare(train.pixels[chosen], side, size, t.mean, t.std, batch.positions)
    # Ours rescales once, to bytes again
    atol = 1e-4 if size == 32 else 0.51 / 255 / t.std.min().item()
    torch.testing.assert_close(batch.tiles, shuffled, atol=atol, rtol=0)
    torch.testing.assert_close(gather(batch.tiles.flatten(2), batch.order()).view_as(placed), placed, atol=atol, rtol=0)


@pytest.mark.parametrize(("channels", "height", "width"), [(1, 14, 14), (3, 6, 10), (3, 7, 5)])
def test_the_tile_encoder_is_a_convolution_relu_and_pooling(channels, height, width):
    encoder = TileEncoder(channels, 8, 14).double()
    plain = torch.nn.Conv2d(channels, 8, 5, padding=2).double()
    plain.load_state_dict(encoder.convolution.state_dict())
    encoder.features = 8 * (height // 2) * (width // 2)
    x = torch.randn(2, 3, channels, height, width, dtype=torch.float64)
    pooled = torch.nn.functional.max_pool2d(plain(x.flatten(0, 1)).relu(), 2)
    expected = pooled.movedim(1, -1).reshape(2, 3, -1)  # channels last
    torch.testing.assert_close(encoder(x), expected)


@pytest.mark.parametrize("side", [2, 3])
def test_the_literal_version_takes_the_same_step(hub, side):
    """Same weights, same batch: the same loss, and the same gradients."""
    t = task(hub, dataset="cifar10", side=side, model="po-u", channels=4, hidden=5)
    ours, theirs = t.build().double(), literal.Mosaic(side, 3, t.tile, channels=4, hidden=5).double()
    pooled = t.tile // 2
    with torch.no_grad():
        theirs.encoder[0].weight.copy_(ours.encoder.convolution.weight)
        theirs.encoder[0].bias.copy_(ours.encoder.convolution.bias)
        # Ours flattens with the channels last; and splits the first layer in its two halves
        by_channel = ours.arrange.cost.pair.view(10, pooled * pooled, 4).transpose(1, 2).reshape(10, -1)
        theirs.cost.f[0].weight.copy_(torch.cat(by_channel.chunk(2), 1))
        theirs.cost.f[0].bias.copy_(ours.arrange.cost.bias)
        theirs.cost.f[2].weight.copy_(ours.arrange.cost.out.weight)
        theirs.cost.f[2].bias.zero_()
    batch = first_batch(t)
    batch = Puzzles(batch.tiles.double(), batch.positions)
    images = gather(batch.tiles.flatten(2), batch.order()).view_as(batch.tiles)
    one, other = t.loss(ours, batch), torch.nn.functional.mse_loss(theirs(batch.tiles), images)
    torch.testing.assert_close(one, other)
    one.backward(), other.backward()
    torch.testing.assert_close(ours.encoder.convolution.weight.grad, theirs.encoder[0].weight.grad)
    torch.testing.assert_close(ours.arrange.cost.out.weight.grad, theirs.cost.f[2].weight.grad)
    torch.testing.assert_close(ours.arrange.step_size.grad.sum(), theirs.step_size.grad)


def puzzles(pictures):
    """Two puzzles of four 2-by-2 tiles, each of one colour."""
    values = torch.tensor(pictures, dtype=torch.float32)
    positions = torch.tensor([[2, 0, 3, 1], [1, 3, 0, 2]])
    return Puzzles(values.gather(1, positions)[:, :, None, None, None].expand(-1, -1, 1, 2, 2), positions)


def test_scores():
    batch = puzzles([[1, 2, 3, 4], [1, 2, 3, 4]])
    order = batch.order().clone()
    order[1, :2] = order[1, [1, 0]]
    scores = mosaic.scores(batch, order)
    assert scores["exact"].tolist() == scores["pixel_exact"].tolist() == [True, False]
    assert scores["tiles"].tolist() == [1.0, 0.5]
    assert scores["mse"].tolist() == [0.0, 0.5]  # two of four tiles are off by one


def test_identical_tiles_may_change_places():
    batch = puzzles([[1, 2, 3, 4], [1, 1, 3, 4]])
    order = batch.order()[:, [1, 0, 2, 3]]
    scores = mosaic.scores(batch, order)
    assert scores["exact"].tolist() == [False, False]
    assert scores["pixel_exact"].tolist() == [False, True]


def test_losses_of_the_right_answer():
    batch = puzzles([[1, 2, 3, 4], [4, 3, 2, 2]])
    right, wrong = permutation(batch.order()), permutation(batch.order().roll(1, -1))
    assert mosaic.squared_error(right, batch) == 0
    assert mosaic.squared_error(wrong, batch) > 0.1
    assert mosaic.in_place(right, batch) == pytest.approx(0, abs=1e-6)
    assert mosaic.in_place(torch.full((2, 4, 4), 0.25), batch) == pytest.approx(torch.tensor(4.0).log().item())


def test_beside_is_the_cross_entropy_of_the_next_tiles():
    structure, size = us.Grid(2, 3, neighbours=True), 6
    costs = torch.randn(3, 4, size, size, dtype=torch.float64)
    layer = us.Arrange(structure, _Given(costs), steps=1).double()
    arrangement = layer(torch.randn(3, size, 2, dtype=torch.float64))
    positions = torch.stack([torch.randperm(size) for _ in range(3)])
    batch = Puzzles(torch.zeros(3, size, 1, 2, 2), positions)
    total = 0.0
    for r, step in ((2, 3), (3, 1)):  # down the columns, along the rows
        centred = arrangement.descent.centred[:, r]
        pairs = [(k, k + step) for k in range(size) if (k // 3 == 0 if step == 3 else k % 3 < 2)]
        for b in range(3):
            values = -centred[b].masked_fill(torch.eye(size) > 0, torch.inf)
            place = positions[b].tolist()
            for k, after in pairs:
                i, j = place.index(k), place.index(after)
                total -= (log_softmax(values[i], -1)[j] + log_softmax(values[:, j], -1)[i]) / (2 * 3 * len(pairs))
    torch.testing.assert_close(mosaic.beside(arrangement, batch), torch.as_tensor(total))


class _Given(torch.nn.Module):
    def __init__(self, costs):
        super().__init__()
        self.costs = costs

    def forward(self, x):
        return self.costs


def test_ours_has_both_kinds_of_relation(hub):
    t = task(hub, side=3, model="neighbours", channels=4, pair_hidden=(6, 5))
    model = t.build()
    assert model.arrange.cost.order.hidden == (64,)
    assert model.arrange.cost.neighbour.hidden == (6, 5)
    result = model(first_batch(t).tiles)
    assert result.costs.shape == (8, 4, 9, 9)
    t.loss(model, first_batch(t)).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def test_learning_rate():
    paper = MosaicTask.learning_rate
    for model, expected in (("po-u", [1e-3] * 3), ("neighbours", [4e-5, 2e-3, 1e-5])):
        t = MosaicTask.__new__(MosaicTask)
        t.config = settings(model=model)
        assert [paper(t, progress) for progress in (0.0, 0.2, 1.0)] == pytest.approx(expected)


def test_evaluation_counts_the_whole_test_set(hub, monkeypatch):
    monkeypatch.setattr(mosaic, "CHUNK", 5)  # which does not divide the 16 test images
    t = task(hub, dataset="cifar10", side=2, model="neighbours", channels=2, test_steps=2, starts=2)
    torch.manual_seed(0)
    metrics = t.evaluate(t.build().eval())
    assert metrics["images"] == 16
    shares = {"exact", "pixel_exact", "tiles"}
    assert set(metrics) == {"mse", "search_mse", "true_costs_less", "images", *shares, *(f"search_{s}" for s in shares)}
    assert all(0 <= metrics[name] * 16 <= 16 for name in shares)
    assert float(metrics["exact"] * 16).is_integer()
    assert t.evaluate(t.build().eval()).keys() == metrics.keys()


def test_a_model_that_knows_the_answer_scores_full_marks(hub):
    """The whole way through shuffling, the descent, the Hungarian method and the metrics."""
    t = task(hub, dataset="cifar10", side=2, model="lin-assign")

    class Oracle(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.arrange = us.Arrange(us.Grid(2, 2), _Given(torch.zeros(16, 2, 4, 4)), steps=0)

        def forward(self, x):
            images = tiles.normalised(tiles.cut(t.test, 2, 2), t.mean, t.std)
            match = (x[:, :, None] - images[:, None]).square().flatten(3).sum(-1)  # (B, element, position)
            self.arrange.start = _Given(-match.clamp_max(10))
            return self.arrange(x.flatten(2))

    metrics = t.evaluate(Oracle())
    assert metrics == {"mse": 0.0, "exact": 1.0, "pixel_exact": 1.0, "tiles": 1.0, "images": 16}


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"side": 1}, "side must be at least 2, got 1"),
        ({"model": "best"}, "unknown model 'best'"),
        ({"dataset": "mnits"}, "unknown dataset 'mnits'"),
        ({"side": 28}, "side 28 leaves tiles of 1 pixel"),
    ],
)
def test_bad_settings(hub, chosen, message):
    with pytest.raises((Problem, ValueError), match=message):
        task(hub, **chosen)
