"""The tab *Picture*: what is drawn of a picture that is solved, and the controls around it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gradio as gr
import numpy as np
import torch
from PIL import Image
from torch import Tensor

from unshuffle.assignment import apply
from unshuffle.experiments.problem import Problem
from unshuffle.structures import Grid
from unshuffle.tiles import cut, join
from unshuffle.web.drawings import Label, data_uri, heat, matrix, signed, thumbnail, words
from unshuffle.web.film import SCRIPT, Film
from unshuffle.web.uploads import BYTES, uploaded

if TYPE_CHECKING:
    from jaxtyping import Int, UInt8

    from unshuffle.solver import Solution

SIDES = (2, 3, 4, 5)
FIRST = 3, 1  # side and seed that the page opens with
SECONDS = {2: 0.3, 3: 0.4, 4: 1.0, 5: 2.0}  # after that, the search makes no new start
SHOWN = 480  # pixels of the longer side on the page
HINT = "Press **Solve**: every pair of pieces is compared, and the pieces find their places step by step."
PLACE = (
    '<figure class="drawing"><figcaption>The picture</figcaption>'
    '<div class="picture" data-slot="picture"></div></figure>'
)
# What `Grid.relations` are, in words for the pieces i (row) and j (column) of a cost matrix
RELATIONS = ("i somewhere above j", "i somewhere left of j", "i directly above j", "i directly left of j")


def samples() -> list[Path]:
    """Photographs that come with the installed packages."""
    import matplotlib

    package = Path(gr.__file__).parent / "media_assets" / "images"
    found = [package / "cheetah1.jpg", package / "lion.jpg", package / "tower.jpg"]
    found.append(Path(matplotlib.get_data_path()) / "sample_data" / "grace_hopper.jpg")
    return [path for path in found if path.is_file()]


def shown_pieces(picture: Image.Image, side: int) -> UInt8[Tensor, "k c h w"]:
    """The pieces in the size in which the page shows them."""
    scale = min(1.0, SHOWN / max(picture.size))
    width, height = (max(1, round(length * scale / side)) * side for length in picture.size)
    pixels = torch.from_numpy(np.array(picture.convert("RGB").resize((width, height)))).movedim(-1, 0)
    return cut(pixels, side, side)


def as_image(pieces: Tensor, side: int) -> Image.Image:
    joined = join(pieces.round().clamp(0, 255).to(torch.uint8), side, side)
    return Image.fromarray(joined.movedim(0, -1).numpy())


def image_tag(picture: Image.Image) -> str:
    return f'<img decoding="sync" alt="" src="{data_uri(picture)}">'


def still(picture: Image.Image, side: int) -> str:
    """A picture before it is solved."""
    shown = image_tag(as_image(shown_pieces(picture, side), side))
    return Film(f'<div class="stage">{PLACE}</div>', [{"picture": shown, "caption": ""}]).html()


def film(solution: Solution, side: int) -> str:
    """How the picture comes together: P ᵀ applied to the pieces at every step, and P beside it; the last is exact."""
    pieces = shown_pieces(solution.given, side)
    labels = [thumbnail(as_image(piece[None], 1)) for piece in pieces]
    share = matrix("P: which piece goes where", labels, [words(str(k + 1)) for k in range(len(pieces))], slot="P")
    flat = pieces.flatten(1).float()
    frames = []
    for step, soft in enumerate(solution.trajectory):
        blended = as_image(apply(soft, flat).reshape(pieces.shape), side)
        frames.append({"picture": image_tag(blended), "P": heat(soft), "caption": f"step {step}" if step else "start"})
    exact = torch.nn.functional.one_hot(solution.order, len(pieces)).mT
    last = image_tag(as_image(pieces[solution.order], side))
    frames.append({"picture": last, "P": heat(exact), "caption": "after search"})
    return Film(
        f'<div class="stage">{PLACE}{share}</div>',
        frames,
        "Left: the pieces, blended as P says. Right: a row for each piece, a column for each place; yellow is certain. "
        "The last frame is the exact answer, after the search.",
    ).html()


def costs(solution: Solution, side: int) -> str:
    """Every relation's costs, with the pieces in the order that was found along both sides."""
    order = solution.order
    pieces = shown_pieces(solution.given, side)[order]
    labels: Sequence[Label] = [thumbnail(as_image(piece[None], 1)) for piece in pieces]
    relations = Grid(side, side, neighbours=len(solution.costs) == len(RELATIONS)).relations
    drawn = [
        matrix(title, labels, labels, signed(cost[order][:, order]))
        for title, cost, _ in zip(RELATIONS, solution.costs, relations, strict=False)
    ]
    return (
        f'<div class="matrices two">{"".join(drawn)}</div>'
        '<p class="note">What the network thinks of every pair of pieces, row i and column j, in the order found. '
        "Blue pairs want to stand like that, red ones do not.</p>"
    )


def verdict(solution: Solution, right: Int[Tensor, " k"] | None) -> str:
    """How it went; `right` is the order that would have been right, where it is known."""
    least = min(99, int(100 * solution.certainty.min()))
    rest = f"Every piece is at least {least} % certain."
    if right is None:
        return f"Done in {solution.seconds:.2f} s. {rest}"
    count, size = int((solution.order == right).sum()), len(right)
    places = f"**All {size} pieces are back in place**" if count == size else f"**{count} of {size} pieces in place**"
    return f"{places}, in {solution.seconds:.2f} s. {rest}"


def problem(error: Exception) -> str:
    """What went wrong, on the page and as a note that goes away."""
    message = escape(str(error))
    gr.Warning(message)
    return f"⚠️ {message}"


def prepared(picture: Image.Image | None, side: int, seed: float | None, scrambled: bool) -> Any:
    """The picture to solve, and the order that is right, or None if it came in disorder."""
    from unshuffle import solver

    if picture is None:
        if not samples():
            raise Problem("The sample pictures are not installed here; send one of yours.")
        picture = uploaded(samples()[0])
    if scrambled:
        return picture, None
    return solver.scramble(picture, side, side, _whole(seed))


def _whole(seed: float | None) -> int:
    if seed is None or not 0 <= seed < 2**31:
        raise Problem(f"The seed is a whole number from 0 to {2**31 - 1:,}.")
    return int(seed)


def show(picture: Image.Image | None, side: int, seed: float | None, scrambled: bool) -> tuple[Any, str, Any]:
    """The film's place, the message, the costs' place: before solving."""
    try:
        given, _ = prepared(picture, side, seed, scrambled)
        return still(given, side), HINT, gr.update(visible=False)
    except (ValueError, TypeError) as error:
        return gr.skip(), problem(error), gr.skip()


def solved(picture: Image.Image | None, side: int, seed: float | None, scrambled: bool) -> tuple[Any, str, Any, Any]:
    """The film, the message, the costs: after solving."""
    from unshuffle import solver

    try:
        given, right = prepared(picture, side, seed, scrambled)
        solution = solver.solve(given, side, side, seconds=SECONDS[side])
    except (ValueError, TypeError) as error:
        return gr.skip(), problem(error), gr.skip(), gr.skip()
    return film(solution, side), verdict(solution, right), gr.update(visible=True), costs(solution, side)


def warm() -> None:
    """Read the weights of the first grid before somebody waits for them."""
    side, seed = FIRST
    solved(None, side, seed, False)


def receive(path: str | None, before: Image.Image | None, *rest: Any) -> tuple[Any, ...]:
    """A file that was sent, and what `show` shows of it; what was there before stays if it does not do."""
    if path is None:
        return before, gr.skip(), gr.skip(), gr.skip()
    try:
        picture = uploaded(path)
    except Problem as error:
        return before, gr.skip(), problem(error), gr.skip()
    return picture, *show(picture, *rest)


def choose(event: gr.SelectData, *rest: Any) -> tuple[Any, ...]:
    """A sample, and what `show` shows of it."""
    picture = uploaded(samples()[event.index])
    return picture, *show(picture, *rest)


def scramble_again(picture: Image.Image | None, side: int, seed: float | None, scrambled: bool) -> tuple[Any, ...]:
    """The next seed, and what `show` shows of it."""
    following = int(seed or 0) + 1
    return following, *show(picture, side, following, scrambled)


def tab(blocks: gr.Blocks) -> None:
    """The controls on the left, the film on the right."""
    picture = gr.State(None, time_to_live=3600)
    with gr.Row(equal_height=False):
        with gr.Column(scale=2, min_width=280):
            gr.Markdown("### 1 · Choose a picture")
            gallery = gr.Gallery(
                [str(path) for path in samples()],
                columns=4,
                rows=1,
                height=92,
                object_fit="cover",
                allow_preview=False,
                show_label=False,
                container=False,
                interactive=False,
                buttons=[],
                elem_id="samples",
            )
            file = gr.File(
                label=f"… or one of yours, up to {BYTES // 2**20} MB",
                file_types=["image"],
                height=110,
                elem_id="upload",
            )
            gr.Markdown("### 2 · Cut it up")
            side = gr.Radio([(f"{n}×{n}", n) for n in SIDES], value=FIRST[0], label="Grid", elem_id="grid")
            with gr.Row(equal_height=True):
                seed = gr.Number(FIRST[1], precision=0, minimum=0, label="Seed", min_width=90, elem_id="seed")
                again = gr.Button("Scramble again", min_width=140, elem_id="scramble")
            scrambled = gr.Checkbox(
                False, label="My picture is in pieces already", container=False, elem_id="scrambled"
            )
            gr.Markdown("### 3 · Put it together")
            start = gr.Button("Solve", variant="primary", size="lg", elem_id="solve")
        with gr.Column(scale=5, min_width=420):
            message = gr.Markdown(HINT, elem_id="message")
            place = gr.HTML(js_on_load=SCRIPT.read_text(), elem_id="film")
            with gr.Accordion("The costs", open=True, visible=False, elem_id="costs") as fold:
                matrices = gr.HTML()
    given = [picture, side, seed, scrambled]
    shown = [place, message, fold]
    # One event for whatever is done, and one at a time: what was asked for first does not replace what came later
    inline: dict[str, Any] = {"api_visibility": "private", "concurrency_id": "picture", "concurrency_limit": 1}
    quiet = inline | {"show_progress": "hidden"}
    blocks.load(lambda: show(None, *FIRST, False)[0], None, place, **quiet)
    gallery.select(choose, [side, seed, scrambled], [picture, *shown], **quiet)
    file.upload(receive, [file, *given], [picture, *shown], **quiet)
    for change in (side.input, seed.input, scrambled.input):
        change(show, given, shown, **quiet)
    again.click(scramble_again, given, [seed, *shown], **quiet)
    start.click(solved, given, [place, message, fold, matrices], show_progress="minimal", **inline)
