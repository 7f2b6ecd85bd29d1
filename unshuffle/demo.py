"""`make demo`: learn to sort ten numbers in less than a minute, and draw how one set comes into order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from unshuffle.experiments import sorting
from unshuffle.figures.sorting import example, save, sorting_steps
from unshuffle.layer import Arrange

# A quarter of the paper's training set is plenty for ten numbers
CONFIG = replace(sorting.Sorting(), sets=2**16)
PICTURE = Path("demo/sorting.png")


def train(config: sorting.Sorting, console: Console) -> Arrange:
    torch.manual_seed(config.seed)
    model = sorting.build(config)
    optimiser = torch.optim.Adam(model.parameters(), lr=config.lr)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("training", total=-(-config.sets // config.batch_size))
        for x in sorting.batches(config):
            loss = sorting.loss(model, x)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            progress.update(task, advance=1, description=f"training, loss {loss.item():.5f}")
    return model


def main() -> None:
    console = Console()
    console.print(
        f"PO-U learns to sort {CONFIG.size} numbers from [0, 1]: {CONFIG.sets:,} sets, {CONFIG.steps} inner steps."
    )
    model = train(CONFIG, console)
    table = Table("interval", "sets sorted perfectly", title="New sets, on the paper's seven intervals")
    sets = 1000
    for low, high in sorting.INTERVALS:
        share = sorting.perfectly_sorted(model, CONFIG.size, (low, high), sets)
        table.add_row(f"[{low}, {high}]", f"{round(share * sets):,} of {sets:,}")
    console.print(table)
    with torch.no_grad():
        save(sorting_steps(model(example(CONFIG.size))), PICTURE)
    console.print(f"A set being sorted step by step: {PICTURE}")


if __name__ == "__main__":
    main()
