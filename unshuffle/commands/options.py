"""The options that several commands share, with their help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EPOCHS = "Times through the training set; a checkpoint is written after each, and every minute."
MODEL = "lin-assign, po-u, po-la (the paper's) or neighbours (ours)."
RUN_DIR = "Where config, weights, metrics and record go [default: runs/ and the name of the cell]."

Model = Annotated[str, typer.Option(help=MODEL)]
Epochs = Annotated[int | None, typer.Option(help=EPOCHS)]
BatchSize = Annotated[int | None, typer.Option(help="Sets in a batch, of each process.")]
Lr = Annotated[float | None, typer.Option(help="Learning rate of Adam.")]
Steps = Annotated[int | None, typer.Option(help="T, steps of the inner descent.")]
Clip = Annotated[float | None, typer.Option(help="Clip the gradient to this norm.")]
Seed = Annotated[int, typer.Option(help="Of weights and batches.")]
Device = Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1, mps … [default: the best there is]")]
Precision = Annotated[str, typer.Option(help="float32, or bf16 where the device has it; the descent stays float32.")]
Compile = Annotated[bool, typer.Option("--compile", help="Compile the model; worth it for long runs.")]
RunDirectory = Annotated[Path | None, typer.Option(help=RUN_DIR)]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the run in --run-dir, to the same result.")]
Tensorboard = Annotated[bool, typer.Option("--tensorboard", help="Write TensorBoard logs beside metrics.jsonl.")]
DataRoot = Annotated[Path | None, typer.Option(help="Folder of datasets in the hub's layout; or set UNSHUFFLE_DATA.")]
Limit = Annotated[int | None, typer.Option(help="Use only so many images of each split.")]
Dataset = Annotated[str, typer.Option(help="mnist, cifar10, tiny-imagenet, or a folder of images.")]
Results = Annotated[Path, typer.Option(help="Folder of the records.")]
Markdown = Annotated[bool, typer.Option("--markdown", help="As Markdown, for a README.")]
Runs = Annotated[Path, typer.Option(help="Folder for the runs on the way, which a killed command goes on from.")]
