"""The commands of visual question answering."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Annotated, Any

import typer

from unshuffle.commands.common import names, print_tables, reproduce_app, reproduce_cells, run, table_app, train_app
from unshuffle.commands.options import (
    BatchSize,
    Clip,
    Compile,
    Device,
    Epochs,
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

MODELS = "ban, ban-lstm, ban-po-u (the paper's) or ban-neighbours (ours)."
DATA = "Folder with questions, annotations and features of the splits train and val."

Data = Annotated[Path, typer.Option(help=DATA)]
Preset = Annotated[str, typer.Option(help="paper: its sizes; small: for two CPU cores.")]
Least = Annotated[int | None, typer.Option(help="Questions that a candidate answer must have.")]
Limit = Annotated[int | None, typer.Option(help="Use only so many questions of each split.")]


@train_app.command("vqa")
def train_vqa(
    data: Data = Path("scenes"),
    model: Annotated[str, typer.Option(help=MODELS)] = "ban-po-u",
    preset: Preset = "small",
    hidden: Annotated[int | None, typer.Option(help="Width of the question and of what is added to it.")] = None,
    glimpses: Annotated[int | None, typer.Option(help="γ, attention maps.")] = None,
    glove: Annotated[Path | None, typer.Option(help="A GloVe file of word vectors to start from.")] = None,
    least: Least = None,
    epochs: Epochs = None,
    batch_size: BatchSize = None,
    lr: Annotated[float | None, typer.Option(help="Learning rate of Adamax, before warm-up and decay.")] = None,
    steps: Steps = None,
    clip: Clip = None,
    seed: Seed = 0,
    limit: Limit = None,
    device: Device = None,
    precision: Precision = "float32",
    compile: Compile = False,
    run_dir: RunDirectory = None,
    resume: Resume = False,
    tensorboard: Tensorboard = False,
) -> None:
    """Learn to answer questions about sets of object proposals; tested with the official accuracy of VQA v2."""
    chosen: dict[str, Any] = {
        "data": str(data),
        "model": model,
        "preset": preset,
        "hidden": hidden,
        "glimpses": glimpses,
    }
    chosen |= {"glove": None if glove is None else str(glove), "least": least, "epochs": epochs}
    chosen |= {"batch_size": batch_size, "lr": lr, "steps": steps, "clip": clip, "seed": seed, "limit": limit}
    running = {"device": device, "precision": precision, "compile": compile, "run_dir": run_dir, "resume": resume}
    run("vqa", chosen, running | {"tensorboard": tensorboard})


@reproduce_app.command("vqa")
def reproduce_vqa(
    data: Data = Path("scenes"),
    models: Annotated[
        str, typer.Option(help=f"Separated by commas: {MODELS}")
    ] = "ban,ban-lstm,ban-po-u,ban-neighbours",
    seeds: Annotated[int, typer.Option(help="Runs of each model, with seeds 0, 1, 2, …")] = 10,
    preset: Preset = "small",
    least: Least = None,
    epochs: Epochs = None,
    batch_size: BatchSize = None,
    lr: Lr = None,
    limit: Limit = None,
    results: Results = Path("results"),
    runs: Runs = Path("runs"),
    device: Device = None,
    precision: Precision = "float32",
    compile: Compile = False,
) -> None:
    """The table of visual question answering: every model with every seed."""
    cells = [{"data": str(data), "model": model, "seed": seed} for seed, model in product(range(seeds), names(models))]
    chosen = {"preset": preset, "least": least, "epochs": epochs, "batch_size": batch_size, "lr": lr, "limit": limit}
    running = {"run_dir": runs, "device": device, "precision": precision, "compile": compile}
    reproduce_cells("vqa", cells, chosen, results, running)


@table_app.command("vqa")
def table_vqa(results: Results = Path("results"), markdown: Markdown = False) -> None:
    """Accuracy by type of question, mean and sample standard deviation over seeds."""
    print_tables("vqa", results, markdown)
