"""Run a grid of experiments: what has a record is skipped, what was begun goes on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from unshuffle.experiments import records, training
from unshuffle.experiments.tasks import experiment
from unshuffle.experiments.training import RunDir, Running, accelerator_for, train


def reproduce(
    name: str, configs: Iterable[Any], results: Path, running: Running, root: Path | None, console: Console
) -> None:
    """Train every configuration whose cell has no record in `results`; `running.run_dir` holds the runs."""
    todo = [(config, results / f"{config.cell}.json") for config in configs]
    for number, (config, target) in enumerate(todo, 1):
        title = f"[{number}/{len(todo)}] {config.cell}"
        if target.exists():
            console.print(f"{title}: recorded in {target}{other(target, config)}", highlight=False, soft_wrap=True)
            continue
        for needed, its_config in experiment(name).needs(config):
            provide(needed, its_config, results, running, root, console)
        begin(name, config, target, running, root, console, title)


def provide(name: str, config: Any, results: Path, running: Running, root: Path | None, console: Console) -> None:
    """Train what a cell builds upon, unless it was trained already, with whatever settings."""
    target, finished = results / f"{config.cell}.json", RunDir(running.run_dir / config.cell).record
    if not finished.exists():
        begin(name, config, target, running, root, console, f"needed first: {config.cell}")
        return
    console.print(
        f"{config.cell}: trained in {finished.parent}{other(finished, config)}", soft_wrap=True, highlight=False
    )
    if not target.exists():
        records.read(finished).write(target)


def begin(
    name: str, config: Any, target: Path, running: Running, root: Path | None, console: Console, title: str
) -> None:
    """Train one configuration, or go on with it, and put its record where it belongs."""
    about = f"{config.epochs} epochs of batches of {config.batch_size}, seed {config.seed}"
    console.print(f"{title}: {about}", highlight=False, soft_wrap=True)
    here = replace(running, run_dir=running.run_dir / config.cell, resume=True)
    accelerator = accelerator_for(here)
    task = experiment(name).task(config, accelerator.device, root)
    record = train(task, here, accelerator, console)
    if accelerator.is_main_process:
        record.write(target)


def other(target: Path, config: Any) -> str:
    """How the settings of a record differ from those asked for."""
    differing = training.differing(records.read(target).config, training.as_json(config))
    return f" with another choice of {', '.join(differing)}; remove it to train again" if differing else ""
