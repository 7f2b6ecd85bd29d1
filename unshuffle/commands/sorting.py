"""The commands of the sorting task."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Annotated

import typer

from unshuffle.commands.common import (
    names,
    numbers,
    print_tables,
    reproduce_app,
    reproduce_cells,
    run,
    table_app,
    train_app,
)
from unshuffle.commands.options import (
    MODEL,
    BatchSize,
    Clip,
    Compile,
    Device,
    Epochs,
    Lr,
    Markdown,
    Model,
    Precision,
    Results,
    Resume,
    RunDirectory,
    Runs,
    Seed,
    Steps,
    Tensorboard,
)


@train_app.command("sorting")
def train_sorting(
    size: Annotated[int, typer.Option(help="Numbers in a set, 5 to 1024.")] = 10,
    model: Model = "po-u",
    epochs: Epochs = None,
    batch_size: BatchSize = None,
    limit: Annotated[int | None, typer.Option(help="Use only so many sets, in an epoch and of each test.")] = None,
    lr: Lr = None,
    steps: Steps = None,
    clip: Clip = None,
    seed: Seed = 0,
    device: Device = None,
    precision: Precision = "float32",
    compile: Compile = False,
    run_dir: RunDirectory = None,
    resume: Resume = False,
    tensorboard: Tensorboard = False,
) -> None:
    """Learn to sort numbers from [0, 1]; tested on the paper's seven intervals and on other sizes."""
    chosen = {"size": size, "model": model, "epochs": epochs, "batch_size": batch_size, "limit": limit, "lr": lr}
    chosen |= {"steps": steps, "clip": clip, "seed": seed}
    running = {"device": device, "precision": precision, "compile": compile, "run_dir": run_dir, "resume": resume}
    run("sorting", chosen, running | {"tensorboard": tensorboard})


@reproduce_app.command("sorting")
def reproduce_sorting(
    sizes: Annotated[str, typer.Option(help="Separated by commas.")] = "5,10,15,80,100,120,512,1024",
    models: Annotated[str, typer.Option(help=f"Separated by commas: {MODEL}")] = "po-u",
    epochs: Epochs = None,
    results: Results = Path("results"),
    runs: Runs = Path("runs"),
    device: Device = None,
) -> None:
    """The sorting table: the paper's sizes."""
    cells = [{"size": size, "model": model} for model, size in product(names(models), numbers("--sizes", sizes))]
    reproduce_cells("sorting", cells, {"epochs": epochs}, results, {"run_dir": runs, "device": device})


@table_app.command("sorting")
def table_sorting(results: Results = Path("results"), markdown: Markdown = False) -> None:
    """Share of sets sorted perfectly, by size and interval."""
    print_tables("sorting", results, markdown)
