"""`make demo`: learn to sort ten numbers in less than a minute, and draw how one set comes into order."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import torch
from rich.console import Console
from rich.table import Table

from unshuffle.experiments.sorting import INTERVALS, SortingTask, perfectly_sorted, settings
from unshuffle.experiments.training import Run, RunDir, Running, accelerator_for
from unshuffle.figures.drawing import save
from unshuffle.figures.sorting import example, sorting_steps
from unshuffle.layer import Arrange

# A quarter of the paper's training set is plenty for ten numbers
CONFIG = settings(sets=2**16)
PICTURE = Path("demo/sorting.png")


def main() -> None:
    console = Console()
    console.print(
        f"PO-U learns to sort {CONFIG.size} numbers from [0, 1]: {CONFIG.sets:,} sets, {CONFIG.steps} inner steps."
    )
    with TemporaryDirectory() as folder:
        running = Running(Path(folder), device="cpu")
        accelerator = accelerator_for(running)
        run = Run(SortingTask(CONFIG, accelerator.device), running, accelerator, RunDir(running.run_dir))
        run.train(console)
    model = run.model.eval()
    table = Table("interval", "sets sorted perfectly", title="New sets, on the paper's seven intervals")
    sets = 1000
    for interval in INTERVALS:
        share = perfectly_sorted(cast(Arrange, model), CONFIG.size, interval, sets)
        table.add_row(str(list(interval)), f"{round(share * sets):,} of {sets:,}")
    console.print(table)
    with torch.no_grad():
        save(sorting_steps(model(example(CONFIG.size))), PICTURE)
    console.print(f"A set being sorted step by step: {PICTURE}")


if __name__ == "__main__":
    main()
