import time

import numpy as np
import pytest
import torch
from matplotlib.cbook import get_sample_data
from PIL import Image

import unshuffle as us
from unshuffle.closer import along_edges, scales
from unshuffle.pictures import small_pieces
from unshuffle.search import order_cost
from unshuffle.solver import canonical, scramble
from unshuffle.structures import Grid


@pytest.fixture(scope="module")
def photo():
    with get_sample_data("grace_hopper.jpg") as file:
        return Image.open(file).convert("RGB")


@pytest.mark.parametrize("side", [2, 3])
def test_a_photograph_comes_back(photo, side):
    shuffled, order = scramble(photo, side, side, seed=1)
    assert shuffled.tobytes() != photo.tobytes()
    solution = us.solve(shuffled, side, side)
    assert torch.equal(solution.order, order)
    width, height = (n // side * side for n in photo.size)
    assert solution.picture.tobytes() == photo.crop((0, 0, width, height)).tobytes()
    assert solution.given.tobytes() == shuffled.tobytes()
    assert (solution.rows, solution.cols) == (side, side)
    assert solution.seconds > 0
    size = side**2
    assert solution.trajectory.shape == (33, size, size)
    torch.testing.assert_close(solution.trajectory.sum(-2), torch.ones(33, size))
    assert solution.costs.shape == (4, size, size)
    assert ((solution.certainty > 0.5) & (solution.certainty <= 1)).all()


def test_how_the_pieces_lay_does_not_matter(photo):
    """To the last bit, also where the answer is not the right one."""
    noise = Image.fromarray(torch.randint(256, (66, 66, 3), dtype=torch.uint8).numpy())
    for picture in (photo, noise):
        first, second = (us.solve(scramble(picture, 3, 3, seed)[0], 3, 3) for seed in (1, 2))
        assert first.picture.tobytes() == second.picture.tobytes()
        assert torch.equal(first.certainty, second.certainty)


def test_costs_and_steps_belong_to_the_pieces_as_they_came(photo):
    structure = Grid(2, 2, neighbours=True)
    shuffled, order = scramble(photo, 2, 2, seed=3)
    kept, moved = us.solve(photo, 2, 2), us.solve(shuffled, 2, 2)
    torch.testing.assert_close(moved.costs[:, order][:, :, order], kept.costs)
    torch.testing.assert_close(moved.trajectory[:, order], kept.trajectory)
    others = torch.stack([torch.randperm(4) for _ in range(20)])
    spent = order_cost(moved.costs.expand(20, -1, -1, -1), structure, others)
    assert (order_cost(moved.costs, structure, moved.order) <= spent + 1e-6).all()


def test_the_same_seed_gives_the_same_answer():
    noise = torch.randint(256, (44, 44, 3), dtype=torch.uint8)
    first, second = (us.solve(noise, 2, 2, seed=5) for _ in range(2))
    assert torch.equal(first.order, second.order)
    assert torch.equal(first.certainty, second.certainty)


def test_noise_is_less_certain_than_a_photograph(photo):
    noise = torch.randint(256, (132, 132, 3), dtype=torch.uint8)
    assert us.solve(noise, 3, 3).certainty.mean() < us.solve(photo, 3, 3).certainty.mean()


def test_equal_pieces_are_as_good_as_each_other():
    solution = us.solve(torch.full((30, 30, 3), 90, dtype=torch.uint8), 3, 3)
    assert sorted(solution.order.tolist()) == list(range(9))
    assert solution.certainty.max() < 0.9


def test_time_bounds_the_starts(photo):
    begin = time.perf_counter()
    us.solve(photo, 2, 2, starts=100_000, seconds=0.2)
    assert time.perf_counter() - begin < 5


def test_a_model_of_ones_own(photo):
    model = us.load("natural-2x2")
    assert torch.equal(us.solve(photo, 2, 2, model=model).order, us.solve(photo, 2, 2).order)
    with pytest.raises(ValueError, match="not 3 rows and 3 columns"):
        us.solve(photo, 3, 3, model=model)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": 6, "cols": 6}, r"no weights for a grid of 6×6; there are some for 2×2, 3×3"),
        ({"rows": 0}, "rows must be at least 1"),
        ({"starts": 0}, "starts must be at least 1"),
        ({"seconds": 0}, "seconds must be above 0"),
    ],
)
def test_bad_arguments(photo, change, message):
    with pytest.raises(ValueError, match=message):
        us.solve(photo, **({"rows": 2, "cols": 2} | change))


def test_scramble_always_moves_something_and_says_how_to_undo_it():
    picture = Image.fromarray(torch.randint(256, (10, 12, 3), dtype=torch.uint8).numpy())
    seen = set()
    for seed in range(30):
        shuffled, order = scramble(picture, 1, 2, seed)
        assert order.tolist() == [1, 0]
        shuffled, order = scramble(picture, 2, 2, seed)
        seen.add(tuple(order.tolist()))
        before, after = (small_pieces(p, 2, 2, 5) for p in (picture, shuffled))
        assert torch.equal(after[order], before)
    assert (0, 1, 2, 3) not in seen
    assert len(seen) > 10


def test_canonical_depends_on_what_the_pieces_are():
    pieces = torch.randint(256, (9, 3, 4, 4), dtype=torch.uint8)
    order = torch.randperm(9)
    assert torch.equal(pieces[canonical(pieces)], pieces[order][canonical(pieces[order])])


@pytest.mark.parametrize(("size", "found"), [((10, 90), ()), ((22, 90), (2,)), ((88, 90), (2, 4, 8))])
def test_nothing_is_magnified_to_look_closer(size, found):
    assert scales(*size, 11) == found


def test_looking_closer_adds_up_what_meets_along_an_edge():
    """Against loops: the tiles at the right edge of i, top to bottom, against those at the left edge of j."""
    model = us.load("natural-2x2")
    tile = model.tile
    pieces = torch.randint(256, (4, 3, 2 * tile, 2 * tile), dtype=torch.uint8)
    with torch.no_grad():
        below, right = along_edges(model, pieces)
        for i in range(4):
            for j in range(4):
                expected = [0.0, 0.0]
                for t in range(2):
                    along = slice(t * tile, (t + 1) * tile)
                    meetings = (
                        (pieces[i, :, tile:, along], pieces[j, :, :tile, along]),
                        (pieces[i, :, along, tile:], pieces[j, :, along, :tile]),
                    )
                    for axis, meeting in enumerate(meetings):
                        expected[axis] += model.neighbour_costs(torch.stack(meeting)[None])[0, axis, 0, 1].item()
                assert np.allclose([below[i, j], right[i, j]], expected, atol=1e-3)
