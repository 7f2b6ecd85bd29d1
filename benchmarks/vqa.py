"""What PO-U costs in a training step of BAN, and how long questions take: `python -m benchmarks.vqa`.

The paper's sizes: 2048 features, 1280 hidden units, 8 glimpses, 3,129 candidate answers, sets of 100 objects of which
none is padding. A step is forward, backward, clipping and Adamax. All models take turns in one process; the batch is
small by default, because on a processor the time of a step grows with it in every model alike.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import torch
from torch.nn.functional import binary_cross_entropy_with_logits

import unshuffle as us
from benchmarks.measure import interleaved
from unshuffle.experiments.vqa.task import MODELS, PRESETS, Vqa, ban, settings

WORDS, ANSWERS, FEATURES = 10_000, 3129, 2048
ASKED = "≤ 1.30 of BAN + LSTM"


def step(config: Vqa, batch: int, objects: int) -> Callable[[], None]:
    """A training step on random sets."""
    torch.manual_seed(0)
    features = config.features or FEATURES
    model = ban(config, features, WORDS, ANSWERS)
    optimiser = torch.optim.Adamax(model.parameters(), lr=config.lr, foreach=True)
    corner = torch.rand(batch, objects, 2)
    boxes = torch.cat([corner, corner + 0.2], -1)
    inputs = (
        torch.randn(batch, objects, features).relu(),
        boxes,
        torch.ones(batch, objects, dtype=torch.bool),
        torch.randint(2, WORDS, (batch, config.length)),
    )
    targets = torch.rand(batch, ANSWERS).gt(0.999).float()

    def call() -> None:
        loss = binary_cross_entropy_with_logits(model(*inputs), targets) * ANSWERS
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip or 1e9)
        optimiser.step()

    return call


def rows(preset: str, batch: int, objects: int, seconds: float, least: int) -> list[dict[str, str]]:
    steps: dict[str, Callable[[], object]] = {
        model: step(settings(preset=preset, model=model), batch, objects) for model in MODELS
    }
    taken = interleaved(steps, seconds=seconds, least=least)
    return [
        {
            "model": model,
            "step ms": f"{taken[model] * 1e3:.0f}",
            "of BAN": f"{taken[model] / taken['ban']:.2f}",
            "of BAN + LSTM": f"{taken[model] / taken['ban-lstm']:.2f}",
            "asked": ASKED if model == "ban-po-u" else "",
        }
        for model in steps
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", choices=list(PRESETS), default="paper")
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--objects", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=60.0, help="for all models together, after two calls of each")
    parser.add_argument("--least", type=int, default=3, help="calls of each model at the least")
    parser.add_argument("--out", type=Path, help="write the table there too, as JSON")
    arguments = parser.parse_args()
    found = rows(arguments.preset, arguments.batch_size, arguments.objects, arguments.seconds, arguments.least)
    print("| " + " | ".join(found[0]) + " |\n|" + "---|" * len(found[0]))
    for row in found:
        print("| " + " | ".join(row.values()) + " |")
    if arguments.out:
        about = {"version": us.__version__, "torch": torch.__version__, "threads": torch.get_num_threads()}
        about |= {"preset": arguments.preset, "batch": arguments.batch_size, "objects": arguments.objects}
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps(about | {"rows": found}, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
