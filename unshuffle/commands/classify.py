"""The commands of the implicit experiment: its classifiers, and the permutations that they teach."""

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
    Precision,
    Results,
    Resume,
    RunDirectory,
    Runs,
    Seed,
    Steps,
    Tensorboard,
)

ROWS = f"{MODEL[:-1]}; or max or min: original or shuffled images, with nothing to train."

Images = Annotated[int | None, typer.Option(help="That an epoch draws from the training set.")]
Schedule = Annotated[str | None, typer.Option(help="Of the learning rate: constant, or one-cycle.")]
TestSteps = Annotated[int | None, typer.Option(help="T in evaluation [default: as in training]")]


@train_app.command("classifier")
def train_classifier(
    dataset: Dataset = "mnist",
    size: Annotated[int | None, typer.Option(help="Pixels a side [default: the dataset's own size].")] = None,
    epochs: Epochs = None,
    batch_size: BatchSize = None,
    lr: Lr = None,
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
    """Teach ResNet-18 what is in the whole images; `train classify` reads with it."""
    chosen = {"dataset": dataset, "size": size, "epochs": epochs, "batch_size": batch_size, "lr": lr, "clip": clip}
    chosen |= {"seed": seed, "limit": limit}
    running = {"device": device, "precision": precision, "compile": compile, "run_dir": run_dir, "resume": resume}
    run("classifier", chosen, running | {"tensorboard": tensorboard}, data_root)


@train_app.command("classify")
def train_classify(
    dataset: Dataset = "mnist",
    side: Annotated[int, typer.Option(help="Tiles along each side of the image.")] = 3,
    model: Annotated[str, typer.Option(help=ROWS)] = "po-la",
    images: Images = None,
    epochs: Epochs = None,
    batch_size: BatchSize = None,
    lr: Lr = None,
    schedule: Schedule = None,
    steps: Steps = None,
    test_steps: TestSteps = None,
    clip: Clip = None,
    seed: Seed = 0,
    limit: Limit = None,
    classifiers: Annotated[Path | None, typer.Option(help="Folder of the classifiers' runs [default: runs].")] = None,
    data_root: DataRoot = None,
    device: Device = None,
    precision: Precision = "float32",
    compile: Compile = False,
    run_dir: RunDirectory = None,
    resume: Resume = False,
    tensorboard: Tensorboard = False,
) -> None:
    """Learn to arrange the shuffled tiles of an image so that a frozen classifier can read it."""
    chosen = {"dataset": dataset, "side": side, "model": model, "images": images, "epochs": epochs, "lr": lr}
    chosen |= {"batch_size": batch_size, "schedule": schedule, "steps": steps, "test_steps": test_steps, "clip": clip}
    chosen |= {"seed": seed, "limit": limit, "classifiers": None if classifiers is None else str(classifiers)}
    running = {"device": device, "precision": precision, "compile": compile, "run_dir": run_dir, "resume": resume}
    run("classify", chosen, running | {"tensorboard": tensorboard}, data_root)


@reproduce_app.command("classify")
def reproduce_classify(
    datasets: Annotated[str, typer.Option(help="Separated by commas.")] = "mnist,cifar10",
    sides: Annotated[str, typer.Option(help="Separated by commas.")] = "2,3,4,5",
    models: Annotated[
        str, typer.Option(help=f"Separated by commas: {ROWS}")
    ] = "max,min,lin-assign,po-u,po-la,neighbours",
    images: Images = None,
    epochs: Epochs = None,
    lr: Lr = None,
    schedule: Schedule = None,
    steps: Steps = None,
    test_steps: TestSteps = None,
    clip: Clip = None,
    limit: Limit = None,
    results: Results = Path("results"),
    runs: Runs = Path("runs"),
    data_root: DataRoot = None,
    device: Device = None,
    precision: Precision = "float32",
    compile: Compile = False,
) -> None:
    """The classification tables: missing classifiers first, then the paper's three models, ours, and the bounds."""
    choices = product(names(datasets), numbers("--sides", sides), names(models))
    cells = [{"dataset": dataset, "side": side, "model": model} for dataset, side, model in choices]
    chosen = {"images": images, "epochs": epochs, "lr": lr, "schedule": schedule, "steps": steps, "clip": clip}
    chosen |= {"test_steps": test_steps, "limit": limit, "classifiers": str(runs)}
    running = {"run_dir": runs, "device": device, "precision": precision, "compile": compile}
    reproduce_cells("classify", cells, chosen, results, running, data_root)


@table_app.command("classify")
def table_classify(results: Results = Path("results"), markdown: Markdown = False) -> None:
    """Accuracy through the implicit reconstruction, and its error, by dataset and side."""
    print_tables("classify", results, markdown)
