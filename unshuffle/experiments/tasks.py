"""The experiments by name: how to make their settings, and the task that the loop trains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch

from unshuffle.experiments import classifier, classify, mosaic, sorting
from unshuffle.experiments.problem import Problem
from unshuffle.experiments.training import Task
from unshuffle.experiments.vqa import task as vqa


@dataclass(frozen=True)
class Experiment:
    settings: Callable[..., Any]
    task: Callable[[Any, torch.device, Path | None], Task]
    needs: Callable[[Any], list[tuple[str, Any]]] = lambda config: []  # what must be trained before: name, settings


EXPERIMENTS = {
    "sorting": Experiment(sorting.settings, sorting.SortingTask),
    "mosaic": Experiment(mosaic.settings, mosaic.MosaicTask),
    "classifier": Experiment(classifier.settings, classifier.ClassifierTask),
    "classify": Experiment(classify.settings, classify.ClassifyTask, classify.needs),
    "vqa": Experiment(vqa.settings, vqa.VqaTask),
}


def experiment(name: str) -> Experiment:
    if name not in EXPERIMENTS:
        raise Problem(f"unknown experiment {name!r}; there are {', '.join(EXPERIMENTS)}")
    return EXPERIMENTS[name]


def config_from(description: dict[str, Any], path: Path) -> tuple[str, Any]:
    """The experiment and its settings from what `training.describe` wrote."""
    chosen = dict(description)
    name = chosen.pop("experiment", None)
    made = experiment(str(name)).settings
    known = {field.name for field in fields(made())}
    if set(chosen) != known:
        raise Problem(f"{path} does not hold the settings of {name}: {', '.join(sorted(set(chosen) ^ known))} differ")
    return str(name), made(**chosen)
