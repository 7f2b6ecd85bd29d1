"""The page: its title, its three tabs, and how it looks. Everything it needs is on this computer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gradio as gr

from unshuffle.web import numbers, picture, results

STYLE = Path(__file__).with_name("page.css")
TITLE = """# unshuffle
A network that learns the order a set has lost. Take a picture, cut it up, and watch it come together. Everything runs
on this computer.
"""
AT_ONCE, WAITING = 2, 24  # requests that are worked on, and that may wait
KEPT = 3600  # seconds that what a visitor sent is kept


def page(records: Path | None = None) -> gr.Blocks:
    with gr.Blocks(title="unshuffle", analytics_enabled=False, delete_cache=(KEPT // 4, KEPT)) as blocks:
        gr.Markdown(TITLE, elem_id="title")
        with gr.Tabs():
            with gr.Tab("Picture"):
                picture.tab(blocks)
            with gr.Tab("Numbers") as second:
                numbers.tab(second)
            with gr.Tab("Results") as third:
                results.tab(third, records)
    return blocks.queue(default_concurrency_limit=AT_ONCE, max_size=WAITING)


def look() -> dict[str, Any]:
    """Colours and system fonts: nothing is fetched."""
    theme = gr.themes.Default(
        primary_hue="teal",
        secondary_hue="teal",
        neutral_hue="slate",
        radius_size="lg",
        font=["system-ui", "Segoe UI", "Roboto", "Helvetica Neue", "DejaVu Sans", "sans-serif"],
        font_mono=["ui-monospace", "SFMono-Regular", "DejaVu Sans Mono", "monospace"],
    )
    theme.set(body_text_color_subdued="*neutral_500")
    return {"theme": theme, "css": STYLE.read_text()}
