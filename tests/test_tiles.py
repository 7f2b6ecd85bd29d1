import pytest
import torch

from unshuffle.tiles import cut, divisible, join, rescale


def test_cut_takes_the_tiles_row_by_row():
    images = torch.arange(2 * 3 * 4 * 9).reshape(2, 3, 4, 9)
    tiles = cut(images, 2, 3)
    assert tiles.shape == (2, 6, 3, 2, 3)
    for k in range(6):
        row, col = divmod(k, 3)
        assert torch.equal(tiles[:, k], images[..., 2 * row : 2 * row + 2, 3 * col : 3 * col + 3])


def test_join_undoes_cut():
    images = torch.rand(5, 2, 1, 6, 8)
    assert torch.equal(join(cut(images, 3, 2), 3, 2), images)


@pytest.mark.parametrize(("size", "side", "next_size"), [(28, 3, 30), (32, 5, 35), (32, 4, 32), (28, 28, 28)])
def test_divisible(size, side, next_size):
    assert divisible(size, side) == next_size


def test_rescale_keeps_what_fits_and_what_is_flat():
    pixels = torch.randint(256, (3, 1, 28, 28), dtype=torch.uint8)
    assert rescale(pixels, 28) is pixels
    flat = torch.full((2, 3, 32, 32), 7, dtype=torch.uint8)
    assert torch.equal(rescale(flat, 35), torch.full((2, 3, 35, 35), 7, dtype=torch.uint8))
    ramp = torch.arange(0, 224, 8, dtype=torch.uint8).expand(1, 1, 28, 28)
    grown = rescale(ramp, 30)[0, 0, 0].int()
    assert (grown.diff() >= 0).all()
    assert grown[0] == 0
    assert grown[-1] == 216
