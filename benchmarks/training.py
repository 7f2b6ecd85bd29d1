"""A training step of the mosaic task, and its data, against the literal version: `python -m benchmarks.training`.

Batch 32, PO-U, 64 channels, as in the paper. Our steps are the task's own, on random images in the hub's layout; the
literal version trains on the same batches. All candidates of a row take turns in one process.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from benchmarks import literal
from benchmarks.images import write_hub
from benchmarks.measure import interleaved
from benchmarks.table import save
from unshuffle.experiments.mosaic import MosaicTask, settings

ASKED = {2: 6, 3: 10, 4: 18, 5: 30}
IMAGES = 512
Call = Callable[[], object]


def our_step(task: MosaicTask, compiled: bool) -> Call:
    torch.manual_seed(0)
    model = task.build()
    call: Any = torch.compile(model, dynamic=False) if compiled else model
    optimiser = torch.optim.Adam(model.parameters(), lr=task.config.lr, fused=True)
    batch = task.batch(0, 0, task.config.batch_size, slice(None))

    def step() -> None:
        loss = task.loss(call, batch)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    return step


def literal_step(task: MosaicTask) -> Call:
    torch.manual_seed(0)
    batch = task.batch(0, 0, task.config.batch_size, slice(None))
    model = literal.Mosaic(task.config.side, task.channels, task.tile)
    optimiser = torch.optim.Adam(model.parameters(), lr=task.config.lr)
    images = torch.stack([tiles[order] for tiles, order in zip(batch.tiles, batch.order(), strict=True)])
    return lambda: literal.step(model, optimiser, batch.tiles, images)


def our_epoch(task: MosaicTask) -> Call:
    """Every batch of an epoch, and the rescaling that happens once before it."""
    size = task.config.batch_size

    def epoch() -> None:
        for first in range(0, task.items, size):
            task.batch(0, first, size, slice(None))

    return epoch


def literal_epoch(task: MosaicTask, root: Path) -> Call:
    from unshuffle.experiments import data

    train, _ = data.load(task.config.dataset, root=root)
    side, size = task.config.side, task.tile * task.config.side

    def epoch() -> None:
        for pixels in train.pixels.split(task.config.batch_size):
            literal.prepare(pixels, side, size, train.mean, train.std)

    return epoch


def row(dataset: str, side: int, root: Path, compiled: bool) -> dict[str, str]:
    config = settings(dataset=dataset, side=side, model="po-u")
    task = MosaicTask(config, torch.device("cpu"), root)
    steps = {"literal": literal_step(task), "ours": our_step(task, False)}
    if compiled:
        steps["compiled"] = our_step(task, True)
    step = interleaved(steps)
    torch.compiler.reset()
    epoch = interleaved({"literal": literal_epoch(task, root), "ours": our_epoch(task)}, seconds=2)
    batches = task.items / config.batch_size
    return {
        "dataset": f"{dataset} {side}×{side}",
        "literal ms": f"{step['literal'] * 1e3:.1f}",
        "ours ms": f"{step['ours'] * 1e3:.1f}",
        "compiled ms": f"{step['compiled'] * 1e3:.1f}" if compiled else "–",
        "ours": f"{step['literal'] / step['ours']:.1f}×",
        "compiled": f"{step['literal'] / step['compiled']:.1f}×" if compiled else "–",
        "asked": f"≥ {ASKED[side]}×",
        "literal data ms": f"{epoch['literal'] / batches * 1e3:.2f}",
        "our data ms": f"{epoch['ours'] / batches * 1e3:.2f}",
        "data / step": f"{100 * epoch['ours'] / batches / step['ours']:.1f} %",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-compile", action="store_true", help="leave the compiled version out")
    parser.add_argument("--datasets", nargs="+", default=["mnist", "cifar10"])
    parser.add_argument("--sides", nargs="+", type=int, default=list(ASKED))
    parser.add_argument("--out", type=Path, help="write the table there too, as JSON")
    arguments = parser.parse_args()
    rows = []
    with TemporaryDirectory() as folder:
        for dataset in arguments.datasets:
            write_hub(Path(folder), dataset, IMAGES, IMAGES // 8)
            for side in arguments.sides:
                rows.append(row(dataset, side, Path(folder), not arguments.no_compile))
                if len(rows) == 1:
                    print("| " + " | ".join(rows[0]) + " |\n|" + "---|" * len(rows[0]))
                print("| " + " | ".join(rows[-1].values()) + " |", flush=True)
    save(rows, arguments.out)


if __name__ == "__main__":
    main()
