"""`make demo`: learn to sort ten numbers and draw how they come into order; then put a photograph back together."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import torch
from matplotlib.cbook import get_sample_data
from PIL import Image
from rich.console import Console
from rich.table import Table

from unshuffle.experiments.images import save as save_picture
from unshuffle.experiments.sorting import INTERVALS, SortingTask, perfectly_sorted, settings
from unshuffle.experiments.training import Run, RunDir, Running, accelerator_for
from unshuffle.figures.sorting import example, save, sorting_steps
from unshuffle.layer import Arrange
from unshuffle.solver import scramble, solve

# A quarter of the paper's training set is plenty for ten numbers
CONFIG = settings(sets=2**16)
PICTURE = Path("demo/sorting.png")
SCRAMBLED, SOLVED = Path("demo/scrambled.png"), Path("demo/solved.png")
SIDE = 3  # of the grid that the photograph is cut into


def main() -> None:
    console = Console()
    sort_numbers(console)
    solve_photograph(console)
    pictures = ", ".join(str(path) for path in (PICTURE, SCRAMBLED, SOLVED))
    console.print(f"\nThe pictures: {pictures}", soft_wrap=True)
    console.print(
        "With pictures of your own, in the browser: make serve (or `unshuffle serve`)"
    )


def sort_numbers(console: Console) -> None:
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


def solve_photograph(console: Console) -> None:
    """Of Grace Hopper, which comes with matplotlib; the model has never seen it."""
    with get_sample_data("grace_hopper.jpg") as file:
        scrambled, order = scramble(Image.open(file), SIDE, SIDE)
    solution = solve(scrambled, SIDE, SIDE)
    placed = int((solution.order == order).sum())
    save_picture(scrambled, SCRAMBLED, [])
    save_picture(solution.picture, SOLVED, [])
    console.print(
        f"\nA photograph cut into {SIDE}×{SIDE} pieces and scrambled ({SCRAMBLED}): {placed} of {len(order)} pieces "
        f"are back in their places after {solution.seconds:.1f} s ({SOLVED})",
        soft_wrap=True,
    )


if __name__ == "__main__":
    main()
