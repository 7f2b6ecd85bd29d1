"""A film: a drawing with slots, what stands in them at every step of a descent, and a slider over the steps.

All frames go to the browser at once, so that the slider answers without asking the server, which keeps nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from html import escape
from pathlib import Path

SCRIPT = Path(__file__).with_name("film.js")


@dataclass(frozen=True)
class Film:
    """
    Attributes:
        stage: HTML in which an element with data-slot="name" is a slot.
        frames: for each step, the markup of every slot. The slot "caption" stands beside the slider.
        note: what there is to see, below the slider.
        plays: from the start as soon as it is shown; else it stands at its end.

    Markup is ours alone: whatever comes from a visitor is a picture that was encoded again, or a number.

    >>> film = Film('<p data-slot="x"></p>', [{"x": "first", "caption": "0"}, {"x": "second", "caption": "1"}])
    >>> "second" in film.html()
    True
    """

    stage: str
    frames: list[dict[str, str]]
    note: str = ""
    plays: bool = True

    def html(self) -> str:
        frames = escape(json.dumps(self.frames), quote=True)
        hidden = " hidden" if len(self.frames) < 2 else ""
        return (
            f'<div class="film" data-frames="{frames}"{" data-plays" if self.plays else ""}>{self.stage}'
            f'<div class="film-controls"{hidden}>'
            '<button type="button" aria-label="Play"></button>'
            f'<input type="range" min="0" max="{len(self.frames) - 1}" value="0" aria-label="Inner step">'
            f'<output data-slot="caption"></output></div><p class="note">{self.note}</p></div>'
        )
