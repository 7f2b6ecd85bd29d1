import pytest
import torch
from PIL import Image

import unshuffle as us
from unshuffle.figures.assembling import save_steps, soft_pictures
from unshuffle.pictures import pixels


@pytest.fixture(scope="module")
def solution():
    return us.solve(torch.randint(256, (40, 60, 3), dtype=torch.uint8), 2, 2)


def test_the_steps_mix_the_pieces(solution):
    steps = soft_pictures(solution)
    assert steps.shape == (33, 3, 40, 60)
    given = pixels(solution.given).float()
    places = [given[:, r : r + 20, c : c + 30] for r in (0, 20) for c in (0, 30)]
    first = sum(p * piece for p, piece in zip(solution.trajectory[3, :, 1], places, strict=True))
    torch.testing.assert_close(steps[3, :, :20, 30:].float(), first, atol=0.51, rtol=0)
    assert soft_pictures(solution, longest=30).shape == (33, 3, 20, 30)


def test_the_animation_begins_with_what_was_given_and_ends_with_the_result(solution, tmp_path):
    save_steps(solution, tmp_path / "steps.gif")
    with Image.open(tmp_path / "steps.gif") as gif:
        assert gif.n_frames > 2
        for frame, picture in ((0, solution.given), (gif.n_frames - 1, solution.picture)):
            gif.seek(frame)
            error = pixels(gif.convert("RGB")).float() - pixels(picture).float()
            assert error.abs().mean() < 30  # a GIF has 256 colours, and this is noise
