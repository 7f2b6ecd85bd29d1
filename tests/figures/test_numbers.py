"""The numbers that are drawn are the right ones."""

import pytest
import torch

import unshuffle as us
from unshuffle.assembler import Assembler
from unshuffle.assignment import permutation
from unshuffle.figures import comparison, costs, curves, gradients, pairs, sensitivity, step_size, steps
from unshuffle.figures.drawing import centred
from unshuffle.structures import Neighbour, Order
from unshuffle.tiles import cut, join


@pytest.fixture
def model():
    grid = us.Grid(2, 2, neighbours=True)
    return Assembler(grid, 3, 4, channels=4, hidden=8, pair_hidden=(8, 4), steps=6).double().requires_grad_(False)


@pytest.fixture
def tiles():
    return torch.rand(5, 4, 3, 4, 4, dtype=torch.float64)


@pytest.mark.parametrize("hidden", [8, (8, 4)])
def test_comparison_is_antisymmetric_and_f_written_out(hidden):
    cost = us.PairwiseCost(1, hidden, us.Sequence())
    torch.nn.init.normal_(cost.bias)
    big_f, small_f = comparison.comparisons(cost, (0, 10), 11)
    assert torch.equal(big_f, -big_f.mT)
    torch.testing.assert_close(big_f, small_f - small_f.mT)
    exact = cost.double()
    pair = torch.tensor([[3.0], [7.0]], dtype=torch.float64)  # entries 3 and 7 of 0 to 10
    hidden_values = (exact.pair.chunk(2)[0] @ pair[0] + exact.pair.chunk(2)[1] @ pair[1] + exact.bias).relu()
    for layer in exact.layers:
        hidden_values = layer(hidden_values).relu()
    torch.testing.assert_close(small_f[3, 7], exact.out(hidden_values)[0].detach())
    assert cost.pair.dtype == torch.float64  # the caller made it so; `comparisons` works on a copy


def test_colours_are_centred_on_zero():
    assert centred(torch.tensor([-1.0, 3.0]), torch.tensor([-4.0])) == {"cmap": "RdBu_r", "vmin": -4.0, "vmax": 4.0}
    assert centred(torch.zeros(2))["vmax"] == 1.0


def test_tiles_are_lined_up_by_one_cost():
    place = torch.tensor([2.0, 0.0, 3.0, 1.0])
    assert costs.lined_up(place[:, None] - place).tolist() == [1, 3, 0, 2]


def test_true_neighbours_stand_beside_each_other_in_every_line():
    grid, true = us.Grid(2, 3, neighbours=True), torch.tensor([5, 3, 1, 0, 2, 4])
    assert costs.lines(grid, Neighbour(1), true).tolist() == [5, 3, 1, 0, 2, 4]
    assert costs.lines(grid, Neighbour(0), true).tolist() == [5, 0, 3, 2, 1, 4]


def test_matrices_are_drawn_where_their_tiles_are(model, tiles):
    matrices, true = model(tiles).costs[0], torch.tensor([2, 0, 3, 1])
    figure = costs.costs(model.arrange.structure, matrices, tiles[0], true, "")
    drawn = {axis.get_title(): axis for axis in figure.axes}
    axis = drawn["directly above (in boxes: so in the image)"]
    order = torch.tensor([2, 3, 0, 1])  # down its columns
    shown = torch.from_numpy(axis.images[0].get_array().data)
    torch.testing.assert_close(shown, matrices[2][order][:, order])
    tile = torch.from_numpy(axis.images[1].get_array().data)  # the first on the left
    torch.testing.assert_close(tile.movedim(-1, 0), tiles[0, 2])
    boxes = [patch.get_xy() for patch in axis.patches if patch.get_width() == 1]
    assert boxes == [(1, 0), (3, 2)]
    whole = torch.from_numpy(drawn["the image"].images[0].get_array().data).movedim(-1, 0)
    torch.testing.assert_close(whole, join(tiles[0, true], 2, 2))


def test_gradients_are_those_of_autograd(model, tiles):
    pair = tiles[:, :2].clone()
    found = pairs.pair_gradients(model, pair)
    assert found.shape == (4, 5, 2, 3, 4, 4)
    torch.testing.assert_close(pairs.compare(model, pair), model.arrange.cost(model.features(tiles))[..., 0, 1])
    pair.requires_grad_()
    cost = pairs.compare(model, pair)[2, 1]  # the third pair, F from left to right
    (expected,) = torch.autograd.grad(cost, pair)
    torch.testing.assert_close(found[1, 2], expected[2])
    epsilon = torch.zeros_like(tiles[:, :2])
    epsilon[2, 1, 0, 1, 3] = 1e-6
    up, down = (pairs.compare(model, (tiles[:, :2] + sign * epsilon))[2, 1] for sign in (1, -1))
    torch.testing.assert_close(found[1, 2, 1, 0, 1, 3], (up - down) / 2e-6, atol=1e-6, rtol=1e-4)


def test_chunks_change_nothing(model, tiles, monkeypatch):
    whole = pairs.pair_gradients(model, tiles[:, :2])
    monkeypatch.setattr(pairs, "CHUNK", 2)
    torch.testing.assert_close(pairs.pair_gradients(model, tiles[:, :2]), whole)


def test_sensitivities_are_mean_absolute_gradients(model, tiles):
    found = sensitivity.sensitivities(model, tiles)
    assert found.shape == (4, 2, 4, 4)
    sums = torch.zeros(2, 4, 4, dtype=torch.float64)
    for image in tiles:
        for number in range(4):
            pair = torch.stack([image[number], image[(number - 1) % 4]])[None].requires_grad_()
            (gradient,) = torch.autograd.grad(pairs.compare(model, pair)[0, 3], pair)
            sums += gradient[0].abs().mean(1)
    torch.testing.assert_close(found[3], sums / 20)
    drawn = sensitivity.panels(model.arrange.structure.relations, found)
    assert drawn[Order(0)].shape == (4, 4)
    assert drawn[Neighbour(0)].shape == (8, 4)
    assert drawn[Neighbour(1)].shape == (4, 8)


def test_gradients_are_of_tiles_that_belong_together(view):
    run = view("neighbours")
    shuffled = run.shuffled(2, 3)
    across, down = sorted(gradients.order_pairs(run, shuffled), key=lambda p: -p.relation.axis)
    assert (across.relation, down.relation) == (Order(1), Order(0))
    image = run.trained[0].test[2] / 255
    placed = cut(image, 3, 3)
    beside = [torch.stack([placed[k], placed[k + 1]]) for k in (0, 1, 3, 4, 6, 7)]
    above = [torch.stack([placed[k], placed[k + 3]]) for k in range(6)]
    assert any(torch.equal(across.tiles[0], pair) for pair in beside)
    assert any(torch.equal(down.tiles[0], pair) for pair in above)
    assert across.gradients.shape == (3, 2, 11, 11)


def test_the_second_gradient_is_of_the_pair_the_other_way_round(view):
    run = view("po-u")
    shuffled, model = run.shuffled(0, 1), run.comparing
    found = next(of_axis for of_axis in gradients.order_pairs(run, shuffled) if of_axis.relation.axis == 0)
    task = run.trained[0]
    normal = (found.tiles - task.mean[:, None, None]) / task.std[:, None, None]
    pair = normal.flip(1).requires_grad_()  # t₂, t₁
    (gradient,) = torch.autograd.grad(pairs.compare(model, pair)[0, 0], pair)
    torch.testing.assert_close(found.gradients[0, 1], gradient[0, 0].sum(0), atol=1e-4, rtol=1e-3)


def test_plain_tiles_are_passed_over():
    candidates = torch.rand(1, 3, 2, 1, 4, 4) * 0.1
    candidates[0, 0, 0] *= 10  # one tile with much to see beside one with little
    candidates[0, 2] *= 5
    assert gradients.with_most_to_see(candidates).tolist() == [2]


def test_reconstructions_go_from_the_start_to_the_exact_order(model, tiles):
    arrangement = model(tiles)
    images = steps.reconstructions(arrangement, tiles)
    assert images.shape == (8, 5, 3, 8, 8)
    flat = tiles.flatten(2)
    soft = torch.einsum("bik,bif->bkf", arrangement.soft, flat).view_as(tiles)
    torch.testing.assert_close(images[6], join(soft, 2, 2))
    exact = torch.stack([image[order] for image, order in zip(tiles, arrangement.order, strict=True)])
    torch.testing.assert_close(images[7], join(exact, 2, 2))
    assert torch.equal(permutation(arrangement.order).sum(-1), torch.ones(5, 4))


def test_the_uniform_start_is_at_the_top(view, monkeypatch):
    drawn = []
    monkeypatch.setattr(steps, "steps", lambda rows, caption: drawn.append(rows))
    steps.of_run(view("po-u"), 0)
    (rows,) = drawn
    assert list(rows) == ["uniform start", "step 1", "step 2", "step 3", "step 4", "exact order", "the image"]
    run = view("po-u")
    shown, mean = cut(rows["uniform start"], 2, 2), run.shuffled(0, steps.IMAGES).pixels.mean(1, keepdim=True)
    torch.testing.assert_close(shown, mean.expand_as(shown))
    torch.testing.assert_close(rows["the image"], run.trained[0].test[: steps.IMAGES] / 255)
    steps.of_run(view("lin-assign"), 0)
    assert list(drawn[1]) == ["linear start", "exact order", "the image"]


def test_steps_are_spread_over_a_long_descent():
    assert steps.spread(0) == [0]
    assert steps.spread(4) == [0, 1, 2, 3, 4]
    assert steps.spread(8) == [0, 2, 4, 6, 8]
    assert steps.spread(32) == [0, 8, 16, 24, 32]


def test_step_sizes_are_the_logged_ones(view):
    run = view("neighbours")
    sizes = step_size.read(run)
    logged = [entry for entry in run.history() if "step_size" in entry]
    assert sizes.epochs == [0, 0.5, 1, 1.5, 2]  # two batches an epoch
    assert sizes.sizes == [[1.0, 1.0], *(entry["step_size"] for entry in logged)]
    lines = step_size.step_size([sizes]).axes[0].lines
    assert list(lines[1].get_ydata()) == [pair[1] for pair in sizes.sizes]
    assert lines[1].get_linestyle() == "--"


def test_curves_are_the_logged_ones(view):
    run = view("po-u")
    read = curves.read(run)
    logged = [entry for entry in run.history() if "epoch" in entry]
    assert set(read.of) == {curves.LOSS, "mse", "exact", "pixel_exact", "tiles"}
    assert read.of["mse"] == [(1, logged[0]["mse"]), (2, logged[1]["mse"])]
    assert [epoch for epoch, _ in read.of[curves.LOSS]] == [0.5, 1, 1.5, 2]
    figure = curves.curves([read, curves.read(view("sorting"))])
    panels = {axis.get_title(): axis for axis in figure.axes}
    assert set(panels) == {curves.LOSS, "mse", "exact", "pixel exact", "tiles", "sorted"}
    assert len(panels["sorted"].lines) == 1
    assert len(figure.legends[0].texts) == 2


def test_smoothing_takes_the_mean_of_what_is_near():
    curve = [(float(k), float(k == 2)) for k in range(6)]
    assert curves.smoothed(curve, 3) == [(0, 0), (1, 1 / 3), (2, 1 / 3), (3, 1 / 3), (4, 0), (5, 0)]
