"""What the permutation adds to the classifier's cost: `python -m benchmarks.classify`.

The bare candidate is a ResNet-18 in evaluation mode that takes no gradients, on whole images: forward, and the gradient
of its input. Folded, its batch norms are part of its convolutions, as they are in the task. The others are the forward
and backward pass of a training step of the task `classify` on the same images, cut and shuffled: in brackets what they
add to the folded network. All candidates of a row take turns in one process; images and weights are random.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from benchmarks.measure import interleaved
from benchmarks.table import save
from unshuffle import tiles
from unshuffle.experiments.classifier import network
from unshuffle.experiments.classify import Reader, settings
from unshuffle.experiments.data import SOURCES
from unshuffle.experiments.puzzles import assembler
from unshuffle.experiments.resnet import frozen
from unshuffle.experiments.training import PRECISIONS

ASKED = 15  # percent, at the most
MODELS = ("lin-assign", "po-u", "po-la", "neighbours")
Call = Callable[[], None]


def candidates(dataset: str, side: int, precision: str, compiled: bool) -> dict[str, Call]:
    source = SOURCES[dataset]
    channels, size = 1 if source.mode == "L" else 3, tiles.divisible(source.size, side)
    batch = settings().batch_size
    torch.manual_seed(0)
    bare = network(10, channels, size).eval().requires_grad_(False)
    classifier = frozen(bare)
    images, labels = torch.randn(batch, channels, size, size), torch.randint(10, (batch,))
    leaf = images.clone().requires_grad_()
    calls = {"bare": step(bare, leaf, labels, [leaf], precision)}
    calls["folded"] = step(classifier, leaf, labels, [leaf], precision)
    shuffled = tiles.cut(images, side, side)[:, torch.randperm(side**2)]
    for name in MODELS:
        config = settings(dataset=dataset, side=side, model=name)
        model: Any = Reader(assembler(config, channels, size // side), config, classifier)
        call = torch.compile(model, dynamic=False) if compiled else model
        calls[name] = step(call, shuffled, labels, list(model.parameters()), precision)
    return calls


def step(model: Any, x: torch.Tensor, labels: torch.Tensor, leaves: list[torch.Tensor], precision: str) -> Call:
    """Forward and backward, from fresh gradients."""

    def call() -> None:
        for leaf in leaves:
            leaf.grad = None
        with torch.autocast(x.device.type, torch.bfloat16, enabled=precision == "bf16"):
            logits = model(x)
        cross_entropy(logits.float(), labels).backward()

    return call


def row(dataset: str, side: int, precision: str, compiled: bool) -> dict[str, str]:
    seconds = interleaved(candidates(dataset, side, precision, compiled))
    torch.compiler.reset()
    shown = {"dataset": f"{dataset} {side}×{side}", "precision": precision}
    shown |= {f"{name} ms": f"{1e3 * seconds[name]:.1f}" for name in ("bare", "folded")}
    for name in MODELS:
        added = [100 * (seconds[name] / seconds[base] - 1) for base in ("bare", "folded")]
        shown[f"{name} adds"] = f"{added[0]:.1f} % ({added[1]:.1f} %)"
    return shown | {"asked": f"< {ASKED} %"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compile", action="store_true", help="compile the candidates but the bare one")
    parser.add_argument("--datasets", nargs="+", default=["mnist", "cifar10"])
    parser.add_argument("--sides", nargs="+", type=int, default=[2, 3, 4, 5])
    parser.add_argument("--precisions", nargs="+", choices=PRECISIONS, default=["float32"])
    parser.add_argument("--out", type=Path, help="write the table there too, as JSON")
    arguments = parser.parse_args()
    rows = []
    for dataset in arguments.datasets:
        for side in arguments.sides:
            for precision in arguments.precisions:
                rows.append(row(dataset, side, precision, arguments.compile))
                if len(rows) == 1:
                    print("| " + " | ".join(rows[0]) + " |\n|" + "---|" * len(rows[0]))
                print("| " + " | ".join(rows[-1].values()) + " |", flush=True)
    save(rows, arguments.out)


if __name__ == "__main__":
    main()
