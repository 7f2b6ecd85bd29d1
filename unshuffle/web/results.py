"""The tab *Results*: our tables beside the paper's, from the records, and the gallery, from the documentation."""

from __future__ import annotations

from base64 import b64encode
from html import escape
from pathlib import Path
from typing import Any

import gradio as gr

import unshuffle
from unshuffle.experiments.problem import Problem

CHECKOUT = Path(unshuffle.__file__).parents[1]
RESULTS = CHECKOUT / "results"
GALLERY = CHECKOUT / "docs" / "gallery.md"
KINDS = {".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg", ".gif": "gif", ".webp": "webp"}


def tables(results: Path = RESULTS) -> str:
    """Every experiment's tables, or where they would be."""
    from unshuffle.experiments.tables import of
    from unshuffle.experiments.tables.collect import TABLES

    if not results.is_dir():
        return _missing(
            f"There is no folder of records at “{escape(results.name)}”: they come with a checkout of the source, not "
            "with the installed package. Start the page with --results FOLDER to show others."
        )
    parts = []
    for name in sorted(TABLES, key=lambda name: name != "mosaic"):
        if not any(results.glob(f"{name}-*.json")):
            continue  # not run yet
        parts.append(f"<h3>{escape(name.capitalize())}</h3>")
        try:
            parts += [render(table.markdown()) for table in of(name, results)]
        except Problem as error:
            parts.append(_missing(escape(str(error))))
    return "".join(parts) or _missing("No run has left a record yet; `unshuffle reproduce mosaic` makes some.")


def gallery(page: Path = GALLERY) -> str:
    """The gallery with its pictures inside, so that no file needs to be served."""
    if not page.is_file():
        return _missing("The gallery of figures is in docs/gallery.md of a checkout of the source.")
    return f'<div class="gallery">{render(page.read_text(), page.parent)}</div>'


def render(markdown: str, folder: Path | None = None) -> str:
    """Markdown as HTML. HTML in it is shown as text; its pictures are taken from the folder, and from nowhere else."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable("table")

    def image(self: Any, tokens: Any, index: int, options: Any, env: Any) -> str:
        words = escape(tokens[index].content)
        if folder is None:
            return words
        path = (folder / str(tokens[index].attrs.get("src", ""))).resolve()
        if not path.is_relative_to(folder.resolve()) or path.suffix not in KINDS or not path.is_file():
            return words
        held = b64encode(path.read_bytes()).decode()
        return f'<img loading="lazy" alt="{words}" src="data:image/{KINDS[path.suffix]};base64,{held}">'

    parser.add_render_rule("image", image)
    return f'<div class="records">{parser.render(markdown)}</div>'


def _missing(words: str) -> str:
    return f'<p class="note">{words}</p>'


def tab(opened: gr.Tab, results: Path | None) -> None:
    with gr.Tabs():
        with gr.Tab("Tables"):
            held = gr.HTML(_missing("Reading the records …"), elem_id="tables")
        with gr.Tab("Gallery", elem_id="gallery-tab") as second:
            figures = gr.HTML(_missing("Reading the gallery …"), elem_id="figures")
    quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
    opened.select(lambda: tables(results or RESULTS), None, held, **quiet)
    second.select(gallery, None, figures, **quiet)
