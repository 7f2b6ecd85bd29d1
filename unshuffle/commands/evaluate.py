"""Measure a trained model again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from unshuffle.commands.options import DataRoot, Device


def evaluate_run(
    run_dir: Annotated[Path, typer.Argument(help="A finished run: it holds config.json and model.safetensors.")],
    data_root: DataRoot = None,
    device: Device = None,
    update: Annotated[bool, typer.Option("--update", help="Put what was measured into the run's record.json.")] = False,
) -> None:
    """Measure a trained model again, on the test set."""
    from unshuffle.experiments import evaluation, tables
    from unshuffle.experiments.data import data_root as root_of

    metrics = evaluation.evaluate(run_dir, device, root_of(data_root))
    Console().print(tables.of_metrics(metrics))
    if update:
        evaluation.update(run_dir, metrics)
