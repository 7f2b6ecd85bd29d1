"""Measure a finished run again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from unshuffle.experiments import checkpoints, records
from unshuffle.experiments.files import read_json
from unshuffle.experiments.problem import Problem
from unshuffle.experiments.tasks import config_from, experiment
from unshuffle.experiments.training import RunDir, Task, evaluating, working_device
from unshuffle.version import __version__


def load(run_dir: Path, device: str | None, root: Path | None) -> tuple[Task, torch.nn.Module]:
    """The task of a run, and its trained model."""
    files = RunDir(run_dir)
    name, config = config_from(read_json(files.config, "the config of a run"), files.config)
    if not files.model.exists():
        raise Problem(f"{run_dir} holds no finished run (there is no {files.model.name}); train it on with --resume")
    weights, _ = checkpoints.read(files.model)
    task = experiment(name).task(config, working_device(device), root)
    model = task.build().to(task.device)
    checkpoints.load_weights(files.model, model, weights)
    return task, model


def evaluate(run_dir: Path, device: str | None, root: Path | None) -> dict[str, Any]:
    """The metrics of a run's record, from its weights."""
    task, model = load(run_dir, device, root)
    with evaluating(model):
        return task.evaluate(model)


def update(run_dir: Path, metrics: dict[str, Any]) -> None:
    """Put new metrics into a run's record, with the version that measured them."""
    path = RunDir(run_dir).record
    replace(records.read(path), metrics=metrics, version=__version__).write(path)
