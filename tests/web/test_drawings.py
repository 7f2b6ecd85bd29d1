from xml.etree import ElementTree

import torch
from PIL import Image

from unshuffle.web.drawings import SHARES, SIGNED, bars, colours, heat, matrix, signed, thumbnail, words


def test_zero_is_white_and_the_sign_is_the_colour():
    cost, saving, nothing = (colours(torch.tensor([[v]]), SIGNED, -1, 1).getpixel((0, 0)) for v in (1.0, -1.0, 0.0))
    assert cost[0] > cost[2]
    assert saving[2] > saving[0]
    assert min(nothing) > 240


def test_a_pixel_for_each_value_in_its_place():
    image = colours(torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]), SHARES, 0, 1)
    assert image.size == (3, 2)
    assert image.getpixel((1, 0)) != image.getpixel((0, 0)) == image.getpixel((1, 1))


def test_a_matrix_is_well_formed_and_escapes_its_labels():
    labels = [words("<script>"), thumbnail(Image.new("RGB", (4, 4)))]
    drawn = ElementTree.fromstring(matrix("P", labels, labels[:1], heat(torch.eye(2)[:, :1])))
    assert "<script>" in "".join(drawn.itertext())  # as text
    assert not drawn.findall(".//script")
    assert signed(torch.zeros(2, 2))  # no division by zero


def test_bars_stand_on_zero():
    drawn = ElementTree.fromstring(f"<svg>{bars(torch.tensor([-1.0, 0.0, 2.0]), -1.0, 2.0)}</svg>")
    below, _, above = ((float(bar.get("y")), float(bar.get("height"))) for bar in drawn)
    assert abs(above[0] + above[1] - below[0]) < 0.02
    assert abs(above[1] - 2 * below[1]) < 0.02
    same = ElementTree.fromstring(f"<svg>{bars(torch.tensor([3.0, 3.0]), 3.0, 3.0)}</svg>")
    assert len(same) == 2
