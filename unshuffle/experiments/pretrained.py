"""The classifier of a finished run, frozen: what the implicit experiment reads its reconstructions with."""

from __future__ import annotations

from pathlib import Path

import torch

from unshuffle.experiments import checkpoints
from unshuffle.experiments.classifier import network, settings
from unshuffle.experiments.files import read_json
from unshuffle.experiments.problem import Problem
from unshuffle.experiments.resnet import ResNet18, frozen
from unshuffle.experiments.training import RunDir


def run_of(folder: Path, dataset: str, size: int) -> RunDir:
    """Where below `folder` the classifier of a dataset at a size is, or will be."""
    return RunDir(folder / settings(dataset=dataset, size=size).cell)


def pretrained(folder: Path, dataset: str, size: int, channels: int, classes: int, device: torch.device) -> ResNet18:
    """The network of `run_of(folder, dataset, size)`: `resnet.frozen`, so that it takes no gradients.

    >>> pretrained(Path("nowhere"), "mnist", 30, 1, 10, torch.device("cpu"))
    Traceback (most recent call last):
    unshuffle.experiments.problem.Problem: nowhere holds no classifier of mnist at 30×30 pixels; run this first: \
unshuffle train classifier --dataset mnist --size 30 --run-dir nowhere/classifier-mnist-30
    """
    files = run_of(folder, dataset, size)
    command = f"unshuffle train classifier --dataset {dataset} --size {size} --run-dir {files.path}"
    if not files.config.exists():
        raise Problem(f"{folder} holds no classifier of {dataset} at {size}×{size} pixels; run this first: {command}")
    found = read_json(files.config, "the config of a run")
    wanted = {"experiment": "classifier", "dataset": dataset, "size": size}
    if any(found.get(name) != value for name, value in wanted.items()):
        what = f"{found.get('experiment')} of {found.get('dataset')} at size {found.get('size')}"
        raise Problem(f"{files.path} holds another run ({what}); move it away, then run this: {command}")
    if not files.record.exists():
        raise Problem(f"the classifier in {files.path} is not finished; run this first: {command} --resume")
    weights, _ = checkpoints.read(files.model)
    known = len(weights.get("fc.bias", ()))
    if known != classes:
        raise Problem(
            f"the classifier in {files.path} knows {known} classes, {dataset} has {classes}; "
            f"move it away, then run this: {command}"
        )
    made = network(classes, channels, size)
    checkpoints.load_weights(files.model, made, weights)
    return frozen(made).to(device)
