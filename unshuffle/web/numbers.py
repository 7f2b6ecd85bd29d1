"""The tab *Numbers*: a layer that was trained to sort, taken apart."""

from __future__ import annotations

import math
import random
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import gradio as gr
import torch
from safetensors.torch import load_file
from torch import Tensor

from unshuffle.assignment import apply, assign
from unshuffle.costs import PairwiseCost
from unshuffle.experiments.problem import Problem
from unshuffle.layer import Arrange
from unshuffle.structures import Sequence
from unshuffle.web.drawings import bars, heat, matrix, signed, words
from unshuffle.web.film import SCRIPT, Film
from unshuffle.web.picture import problem

# PO-U on ten numbers from [0, 1], the paper's settings and a quarter of its sets (540 bytes). Made by
#   unshuffle train sorting --limit 65536 --run-dir runs/page
#   cp runs/page/model.safetensors unshuffle/web/sorting.safetensors
WEIGHTS = Path(__file__).with_name("sorting.safetensors")
HIDDEN, STEPS = 16, 6
MOST, LARGEST = 24, 1e6
FIRST = "0.62, 0.15, 0.87, 0.33, 0.98, 0.05, 0.51, 0.74"


@cache
def sorter() -> Arrange:
    structure = Sequence()
    layer = Arrange(structure, PairwiseCost(1, HIDDEN, structure), steps=STEPS)
    layer.load_state_dict(load_file(WEIGHTS))
    return layer.eval()


def learned_step_size() -> float:
    return round(abs(sorter().step_size.item()), 2)


def read(text: str) -> Tensor:
    """Numbers separated by commas or spaces, (N, 1) float64."""
    found = [word for word in re.split(r"[\s,;]+", text.strip()) if word]
    if not 2 <= len(found) <= MOST:
        raise Problem(f"Type 2 to {MOST} numbers, separated by commas; these are {len(found)}.")
    numbers = []
    for word in found:
        try:
            number = float(word)
        except ValueError:
            raise Problem(f"“{word[:20]}” is not a number; write 0.5, not 0,5.") from None
        if not math.isfinite(number) or abs(number) > LARGEST:
            raise Problem(f"“{word[:20]}” is out of range; numbers go from −{LARGEST:,.0f} to {LARGEST:,.0f}.")
        numbers.append(number)
    return torch.tensor(numbers, dtype=torch.float64).unsqueeze(-1)


def drawn(count: float) -> str:
    return ", ".join(f"{random.random():.2f}" for _ in range(int(count)))


@torch.no_grad()
def sort(text: str, steps: float, step_size: float, temperature: float, *, plays: bool = False) -> tuple[str, str]:
    """The film and what came out."""
    x = read(text)
    descent = sorter().double()(x).descent
    descent = replace(
        descent,
        steps=int(steps),
        step_size=torch.full_like(descent.step_size, step_size),
        temperature=float(temperature),
    )
    trajectory = descent.trajectory()
    order = assign(trajectory[-1])
    film = draw(x, trajectory, descent.costs()[0], plays)
    numbers = x[:, 0]
    out = ", ".join(f"{value:g}" for value in numbers[order].tolist())
    done = bool((numbers[order].diff() >= 0).all())
    if done:
        return film, f"**Sorted:** {out}"
    return film, f"**Not quite sorted:** {out} (learned: T = {STEPS}, η = {learned_step_size():g}, temperature 1)"


def draw(x: Tensor, trajectory: Tensor, costs: Tensor, plays: bool) -> str:
    """At every step: the numbers as P arranges them, P, and the costs of the elements as they are arranged by then."""
    low, high = float(x.min()), float(x.max())
    names = [words(f"{value:g}") for value in x[:, 0].tolist()]
    places = [words(str(k + 1)) for k in range(len(x))]
    limit = float(costs.abs().max())
    frames = []
    for step, soft in enumerate(trajectory):
        frames.append(
            {
                "bars": bars(apply(soft, x)[:, 0], low, high),
                "P": heat(soft),
                "arranged": signed(apply(soft, apply(soft, costs).mT).mT, limit),  # Pᵀ C P
                "caption": "start" if step == 0 else f"step {step}",
            }
        )
    share = matrix("P: which number goes where", names, places, slot="P")
    given = matrix("C: cost of i before j", names, names, signed(costs, limit))
    arranged = matrix("PᵀCP: the costs as they are arranged", places, places, slot="arranged")
    stage = (
        '<figure class="drawing bars"><figcaption>The numbers, arranged</figcaption>'
        '<svg viewBox="0 0 100 60" preserveAspectRatio="none" role="img" aria-label="Bars" data-slot="bars"></svg>'
        f'</figure><div class="matrices">{share}{given}{arranged}</div>'
    )
    note = (
        "Blue: i before j is cheap; red: it costs. In the end, all blue lies above the diagonal. "
        "The layer has only ever seen ten numbers between 0 and 1; try others, or more of them."
    )
    return Film(stage, frames, note, plays).html()


def moved(text: str, steps: float, step_size: float, temperature: float) -> tuple[Any, str]:
    """After a slider: straight to the end."""
    try:
        return sort(text, steps, step_size, temperature)
    except (ValueError, TypeError) as error:
        return gr.skip(), problem(error)


def played(text: str, steps: float, step_size: float, temperature: float) -> tuple[Any, str]:
    """After new numbers: from the start."""
    try:
        return sort(text, steps, step_size, temperature, plays=True)
    except (ValueError, TypeError) as error:
        return gr.skip(), problem(error)


def tab(opened: gr.Tab) -> None:
    """The numbers and the settings on the left, the film on the right."""
    learned = learned_step_size()
    with gr.Row(equal_height=False):
        with gr.Column(scale=2, min_width=280):
            gr.Markdown("### 1 · Type numbers, or draw some")
            text = gr.Textbox(
                FIRST, label=f"Up to {MOST} numbers", lines=2, max_lines=3, submit_btn="Sort", elem_id="numbers"
            )
            with gr.Row(equal_height=True):
                count = gr.Slider(2, MOST, 10, step=1, label="How many", min_width=140, elem_id="count")
                draw_new = gr.Button("Draw", variant="primary", min_width=90, elem_id="draw")
            gr.Markdown("### 2 · Change the descent")
            steps = gr.Slider(0, 20, STEPS, step=1, label="T", info="inner steps", elem_id="steps")
            step_size = gr.Slider(
                0, 4 * math.ceil(learned), learned, step=0.01, label="η", info=f"step size; {learned:g} was learned"
            )
            temperature = gr.Slider(
                0.1, 5, 1, step=0.1, label="Temperature", info="of the Sinkhorn operator: low is sharp, high is soft"
            )
        with gr.Column(scale=5, min_width=420):
            message = gr.Markdown(elem_id="sorted")
            place = gr.HTML(js_on_load=SCRIPT.read_text(), elem_id="sorting")
    given, shown = [text, steps, step_size, temperature], [place, message]
    quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
    opened.select(played, given, shown, **quiet)
    text.submit(played, given, shown, **quiet)
    draw_new.click(drawn, count, text, **quiet).then(played, given, shown, **quiet)
    for slider in (steps, step_size, temperature):
        slider.change(moved, given, shown, **quiet)
