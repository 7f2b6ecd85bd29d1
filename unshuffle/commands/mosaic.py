"""The commands of the mosaic task."""

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
    DataRoot,
    Dataset,
    Device,
    Epochs,
    Limit,
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


@train_app.command("mosaic")
def train_mosaic(
    dataset: Dataset = "mnist",
    side: Annotated[int, typer.Option(help="Tiles along each side of the image.")] = 3,
    model: Model = "po-la",
    epochs: Epochs = None,
    batch_size: BatchSize = None,
    lr: Lr = None,
    steps: Steps = None,
    clip: Clip = None,
    seed: Seed = 0,
    limit: Limit = None,
    data_root: DataRoot = None,
    device: Device = None,
    precision: Precision = "float32",
    compile: Compile = False,
    run_dir: RunDirectory = None,
    resume: Resume = False,
    tensorboard: Tensorboard = False,
) -> None:
    """Learn to put the shuffled tiles of an image back in their places."""
    chosen = {"dataset": dataset, "side": side, "model": model, "epochs": epochs, "batch_size": batch_size, "lr": lr}
    chosen |= {"steps": steps, "clip": clip, "seed": seed, "limit": limit}
    running = {"device": device, "precision": precision, "compile": compile, "run_dir": run_dir, "resume": resume}
    run("mosaic", chosen, running | {"tensorboard": tensorboard}, data_root)


@reproduce_app.command("mosaic")
def reproduce_mosaic(
    datasets: Annotated[str, typer.Option(help="Separated by commas.")] = "mnist,cifar10",
    sides: Annotated[str, typer.Option(help="Separated by commas.")] = "2,3,4,5",
    models: Annotated[str, typer.Option(help=f"Separated by commas: {MODEL}")] = "lin-assign,po-u,po-la,neighbours",
    epochs: Epochs = None,
    limit: Limit = None,
    results: Results = Path("results"),
    runs: Runs = Path("runs"),
    data_root: DataRoot = None,
    device: Device = None,
    precision: Precision = "float32",
    compile: Compile = False,
) -> None:
    """The mosaic tables: the paper's three models and ours."""
    choices = product(names(models), names(datasets), numbers("--sides", sides))
    cells = [{"dataset": dataset, "side": side, "model": model} for model, dataset, side in choices]
    running = {"run_dir": runs, "device": device, "precision": precision, "compile": compile}
    reproduce_cells("mosaic", cells, {"epochs": epochs, "limit": limit}, results, running, data_root)


@table_app.command("mosaic")
def table_mosaic(results: Results = Path("results"), markdown: Markdown = False) -> None:
    """Error and accuracy of re-assembled images, by dataset and side."""
    print_tables("mosaic", results, markdown)
