"""What the page draws, as SVG and small pictures inside the HTML: heat maps with labels, bars."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Sequence
from html import escape
from io import BytesIO
from typing import TYPE_CHECKING

from PIL import Image
from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Float

Label = Callable[[float, float, float], str]  # left, top and size of the square that it fills -> SVG
CELL, GAP = 20.0, 4.0
SHARES, SIGNED = "viridis", "RdBu_r"  # 0 to 1; and around zero, where red costs and blue saves


def data_uri(image: Image.Image, quality: int = 82) -> str:
    """The picture inside its address."""
    buffer = BytesIO()
    image.save(buffer, "WEBP", quality=quality, method=0)
    return f"data:image/webp;base64,{b64encode(buffer.getvalue()).decode()}"


def colours(values: Float[Tensor, "n m"], palette: str, low: float, high: float) -> Image.Image:
    """A pixel for each value."""
    from matplotlib import colormaps

    scaled = ((values - low) / (high - low)).clamp(0, 1)
    return Image.fromarray(colormaps[palette](scaled.numpy(), bytes=True)[..., :3])


def heat(values: Float[Tensor, "n m"], palette: str = SHARES, low: float = 0.0, high: float = 1.0) -> str:
    """What goes into the slot of a `matrix`."""
    buffer = BytesIO()
    colours(values.detach().float(), palette, low, high).save(buffer, "PNG")
    source = f"data:image/png;base64,{b64encode(buffer.getvalue()).decode()}"
    n, m = values.shape
    return (
        f'<image href="{source}" width="{m * CELL:g}" height="{n * CELL:g}" preserveAspectRatio="none" '
        'style="image-rendering:pixelated"/>'
    )


def signed(values: Float[Tensor, "n m"], limit: float | None = None) -> str:
    """A heat map with colours around zero; `limit` is where they end, by default at the largest value."""
    limit = float(values.abs().max()) if limit is None else limit
    return heat(values, SIGNED, -(limit or 1.0), limit or 1.0)


def matrix(title: str, left: Sequence[Label], top: Sequence[Label], inside: str = "", slot: str = "") -> str:
    """A heat map between its labels. Either it is there already, or the film puts one into `slot`."""
    n, m = len(left), len(top)
    edge = CELL + GAP
    rows = "".join(label(0, edge + i * CELL, CELL) for i, label in enumerate(left))
    cols = "".join(label(edge + k * CELL, 0, CELL) for k, label in enumerate(top))
    held = f'<g transform="translate({edge:g} {edge:g})"{f" data-slot={slot!r}" if slot else ""}>{inside}</g>'
    return (
        f'<figure class="drawing"><figcaption>{title}</figcaption>'
        f'<svg viewBox="0 0 {edge + m * CELL:g} {edge + n * CELL:g}" role="img" aria-label="{escape(title)}">'
        f"{rows}{cols}{held}</svg></figure>"
    )


def thumbnail(image: Image.Image) -> Label:
    source = data_uri(image, quality=70)

    def label(x: float, y: float, size: float) -> str:
        return (
            f'<image href="{source}" x="{x + 1:g}" y="{y + 1:g}" width="{size - 2:g}" height="{size - 2:g}" '
            'preserveAspectRatio="xMidYMid slice"/>'
        )

    return label


def words(text: str) -> Label:
    def label(x: float, y: float, size: float) -> str:
        height = min(0.4, 1.5 / max(len(text), 1)) * size
        return (
            f'<text x="{x + size / 2:g}" y="{y + size / 2:g}" font-size="{height:g}" text-anchor="middle" '
            f'dominant-baseline="central">{escape(text)}</text>'
        )

    return label


def bars(values: Float[Tensor, " n"], low: float, high: float) -> str:
    """Inside an SVG of 100 by 60: a bar for each value, from zero or the lowest one up, coloured by its value."""
    # Not up to the palette's end, which is too pale for a bar
    strip = colours(values[None].detach().float(), SHARES, low, high + 0.15 * (high - low) + 1e-9)
    shades = [strip.getpixel((k, 0)) for k in range(len(values))]
    floor = min(0.0, low)
    scale, width = 54 / ((max(0.0, high) - floor) or 1.0), 100 / len(values)
    zero = 58 + floor * scale
    drawn = []
    for k, (value, shade) in enumerate(zip(values.tolist(), shades, strict=True)):
        top, height = zero - max(value, 0.0) * scale, max(abs(value) * scale, 0.6)
        drawn.append(
            f'<rect x="{(k + 0.08) * width:.2f}" y="{top:.2f}" width="{0.84 * width:.2f}" height="{height:.2f}" '
            f'rx="0.6" fill="rgb{shade}"/>'
        )
    return "".join(drawn)
