"""Whatever is sent becomes plain pixels or one line."""

import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from unshuffle.experiments.problem import Problem
from unshuffle.web import uploads
from unshuffle.web.uploads import uploaded


def png_of_size(width, height):
    """A header that promises so many pixels, and next to nothing behind it."""

    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(bytes(5))), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n(touch) print\n"
HOSTILE = {
    "nothing": b"",
    "words": b"I am not a picture.",
    "svg": SVG,
    "html": b"<html><script>alert(1)</script></html>",
    "postscript": EPS,
    "noise": bytes(range(256)) * 40,
    "png without pixels": png_of_size(10, 10),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_picture(tmp_path, name):
    path = tmp_path / "picture.png"
    path.write_bytes(HOSTILE[name])
    with pytest.raises(Problem) as problem:
        uploaded(path)
    assert "\n" not in str(problem.value)
    assert str(tmp_path) not in str(problem.value)


def test_a_bomb_is_not_decoded(tmp_path, monkeypatch):
    path = tmp_path / "bomb.png"
    monkeypatch.setattr(uploads, "open_picture", lambda _: pytest.fail("it was opened"))
    path.write_bytes(png_of_size(8000, 8000))
    with pytest.raises(Problem, match=r"up to 40 million pixels: scale this one down. It has 8,000 × 8,000"):
        uploaded(path)
    path.write_bytes(png_of_size(60_000, 60_000))  # beyond what Pillow itself refuses
    with pytest.raises(Problem, match="up to 40 million pixels"):
        uploaded(path)


def test_a_truncated_photograph(tmp_path, photograph):
    path = tmp_path / "half.jpg"
    path.write_bytes(photograph.read_bytes()[:20_000])
    with pytest.raises(Problem, match="damaged or incomplete"):
        uploaded(path)


def test_an_animation(tmp_path):
    path = tmp_path / "moves.gif"
    frames = [Image.new("RGB", (8, 8), color) for color in ("red", "blue")]
    frames[0].save(path, save_all=True, append_images=frames[1:])
    with pytest.raises(Problem, match="holds 2 frames"):
        uploaded(path)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "I;16", "CMYK"])
def test_all_modes_become_colours(tmp_path, mode):
    path = tmp_path / ("picture.tif" if mode == "CMYK" else "picture.png")
    ramp = np.arange(64 * 64, dtype=np.uint16).reshape(64, 64) * 16
    picture = Image.fromarray(ramp) if mode == "I;16" else Image.fromarray((ramp >> 8).astype(np.uint8)).convert(mode)
    picture.save(path)
    result = uploaded(path)
    assert (result.mode, result.size) == ("RGB", (64, 64))
    assert len(set(np.asarray(result).reshape(-1, 3)[:, 0].tolist())) > 1


def test_a_large_picture_is_scaled_down(tmp_path):
    path = tmp_path / "large.jpg"
    Image.new("RGB", (3000, 1500)).save(path)
    assert uploaded(path).size == (1024, 512)
