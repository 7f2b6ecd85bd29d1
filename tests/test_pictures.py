import struct
import zlib

import numpy as np
import pytest
import torch
from PIL import Image

from unshuffle import pictures
from unshuffle.pictures import as_picture, in_colour, open_picture, rearranged, small_pieces, trimmed


def noise(*shape):
    return torch.randint(256, shape, dtype=torch.uint8).numpy()


@pytest.fixture
def photo(tmp_path):
    path = tmp_path / "photo.jpg"
    Image.fromarray(noise(60, 90, 3)).save(path)
    return path


def test_a_file_that_is_no_picture(tmp_path):
    path = tmp_path / "notes.jpg"
    path.write_text("not a picture")
    with pytest.raises(ValueError, match=r"^notes.jpg is no picture in a format that can be read$"):
        open_picture(path)
    with pytest.raises(ValueError, match="there is no file"):
        open_picture(tmp_path / "missing.png")
    with pytest.raises(ValueError, match="is a folder"):
        open_picture(tmp_path)


def test_truncated(photo):
    photo.write_bytes(photo.read_bytes()[:700])
    with pytest.raises(ValueError, match=r"photo.jpg is damaged or incomplete") as caught:
        open_picture(photo)
    assert "\n" not in str(caught.value)


def png(width, height):
    """A PNG that says how large it is, and holds nothing."""

    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


@pytest.mark.parametrize(("width", "height"), [(8001, 8000), (10_000, 10_000), (60_000, 60_000)])
def test_a_decompression_bomb_is_refused_by_its_header(tmp_path, width, height):
    path = tmp_path / "bomb.png"
    path.write_bytes(png(width, height))
    with pytest.raises(ValueError, match=r"bomb.png is larger than the 64 million pixels"):
        open_picture(path)


def test_programs_are_not_run(tmp_path):
    path = tmp_path / "program.eps"
    path.write_text("%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\nshowpage\n")
    with pytest.raises(ValueError, match=r"program.eps is no picture"):
        open_picture(path)


def test_animations(tmp_path):
    frames = [Image.fromarray(noise(8, 8, 3)) for _ in range(3)]
    frames[0].save(tmp_path / "moving.gif", save_all=True, append_images=frames[1:])
    with pytest.raises(ValueError, match=r"moving.gif holds 3 frames"):
        open_picture(tmp_path / "moving.gif")
    frames[0].save(tmp_path / "still.gif")
    assert open_picture(tmp_path / "still.gif").size == (8, 8)


def test_upright(tmp_path):
    picture = Image.fromarray(noise(20, 30, 3))
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned
    picture.save(tmp_path / "turned.png", exif=exif)
    upright = open_picture(tmp_path / "turned.png")
    assert upright.size == (20, 30)
    assert np.array_equal(np.asarray(upright), np.rot90(np.asarray(picture), 3))


def test_too_small_for_the_grid():
    with pytest.raises(ValueError, match=r"4×2 pixels, too few for 3 rows and 3 columns"):
        trimmed(Image.new("RGB", (4, 2)), 3, 3)


def test_trimmed_leaves_out_the_margin():
    picture = Image.fromarray(noise(32, 35, 3))
    kept = trimmed(picture, 3, 4)
    assert kept.size == (32, 30)
    assert np.array_equal(np.asarray(kept), np.asarray(picture)[:30, :32])


def of_mode(mode):
    if mode == "I;16":
        return Image.fromarray(torch.randint(65536, (12, 18)).numpy().astype(np.uint16))
    if mode in ("I", "F"):
        return Image.fromarray(torch.randn(12, 18).mul(1000).numpy()).convert(mode)
    picture = Image.fromarray(noise(12, 18, 4))
    if mode == "PA":
        return picture.convert("P").convert("PA")
    return picture.convert(mode) if mode != "LAB" else picture.convert("RGB")


MODES = ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "YCbCr", "HSV", "I", "I;16", "F"]


@pytest.mark.parametrize("mode", MODES)
def test_pieces_keep_their_mode_and_every_pixel(mode):
    picture = of_mode(mode)
    assert picture.mode == mode
    order = torch.randperm(6)
    moved = rearranged(picture, order, 2, 3)
    assert moved.mode == mode
    before, after = np.asarray(picture), np.asarray(moved)
    for k, element in enumerate(order.tolist()):
        (row, col), (down, along) = divmod(k, 3), divmod(element, 3)
        piece = before[6 * down : 6 * down + 6, 6 * along : 6 * along + 6]
        assert np.array_equal(after[6 * row : 6 * row + 6, 6 * col : 6 * col + 6], piece)
    assert moved.getpalette() == picture.getpalette()
    assert rearranged(moved, order.argsort(), 2, 3).tobytes() == picture.tobytes()


@pytest.mark.parametrize("mode", MODES)
def test_the_network_sees_every_mode_in_colour(mode):
    seen = in_colour(of_mode(mode))
    assert seen.mode == "RGB"
    assert len(np.unique(np.asarray(seen))) > 1


def test_sixteen_bits_are_scaled_to_eight():
    values = np.array([[0, 257, 32896, 65535]], dtype=np.uint16)
    assert np.asarray(in_colour(Image.fromarray(values)))[0, :, 0].tolist() == [0, 1, 128, 255]


def test_transparent_pixels_are_seen_as_white():
    clear, solid = [10, 20, 30, 0], [10, 20, 30, 255]
    picture = Image.fromarray(np.array([[clear, solid]], dtype=np.uint8))
    assert np.asarray(in_colour(picture)).tolist() == [[[255, 255, 255], [10, 20, 30]]]
    assert np.asarray(rearranged(picture, torch.tensor([1, 0]), 1, 2)).tolist() == [[solid, clear]]


def test_no_pixel_knows_of_the_piece_beside_it():
    picture = Image.fromarray(noise(40, 60, 3))
    order = torch.randperm(6)
    before, after = (small_pieces(p, 2, 3, 7) for p in (picture, rearranged(picture, order, 2, 3)))
    assert before.shape == (6, 3, 7, 7)
    assert torch.equal(after, before[order])


def test_what_is_taken_for_a_picture(photo):
    pixels = torch.from_numpy(noise(6, 8, 3))
    assert np.array_equal(np.asarray(as_picture(pixels)), pixels)
    assert np.array_equal(np.asarray(as_picture(pixels.numpy())), pixels)
    assert as_picture(pixels[..., :1]).mode == as_picture(pixels[..., 0]).mode == "L"
    assert as_picture(photo).size == as_picture(str(photo)).size == (90, 60)
    for wrong in (pixels.float(), pixels[None], pixels[..., :2], pixels[:0]):
        with pytest.raises(ValueError, match="image"):
            as_picture(wrong)
    with pytest.raises(TypeError, match="image must be a PIL image, a path, a tensor or an array"):
        as_picture(3)


def test_a_picture_in_memory_is_bounded_too(monkeypatch):
    monkeypatch.setattr(pictures, "PIXELS", 10)
    with pytest.raises(ValueError, match="larger than"):
        as_picture(Image.new("L", (4, 3)))
