"""Run a grid of experiments: what has a record is skipped, what was begun goes on."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from unshuffle.experiments.files import read_json
from unshuffle.experiments.tasks import experiment
from unshuffle.experiments.training import Running, accelerator_for, describe, train


def reproduce(
    name: str, configs: Iterable[Any], results: Path, running: Running, root: Path | None, console: Console
) -> None:
    """Train every configuration whose cell has no record in `results`; `running.run_dir` holds the runs."""
    todo = [(config, results / f"{config.cell}.json") for config in configs]
    for number, (config, target) in enumerate(todo, 1):
        title = f"[{number}/{len(todo)}] {config.cell}"
        if target.exists():
            console.print(f"{title}: recorded in {target}", highlight=False, soft_wrap=True)
            continue
        console.print(f"{title}: {describe_briefly(config)}", highlight=False, soft_wrap=True)
        here = replace(running, run_dir=running.run_dir / config.cell, resume=True)
        forget_if_other(here.run_dir, describe(name, config))
        accelerator = accelerator_for(here)
        task = experiment(name).task(config, accelerator.device, root)
        record = train(task, here, accelerator, console)
        if accelerator.is_main_process:
            record.write(target)


def describe_briefly(config: Any) -> str:
    return f"{config.epochs} epochs of batches of {config.batch_size}, seed {config.seed}"


def forget_if_other(run_dir: Path, description: dict[str, Any]) -> None:
    """A run of the same cell with other settings, begun and never recorded, is in the way."""
    config = run_dir / "config.json"
    if config.exists() and read_json(config, "the config of a run") != description:
        shutil.rmtree(run_dir)
