"""Checkpoints: everything that a killed run needs to go on to the same result, in one safetensors file.

The batches of a run are functions of its seed and the step, so that the weights, the optimiser's state and the step
are all there is to keep. Nothing is pickled; the file is replaced at once, so that it is always whole.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor, nn

from unshuffle.experiments.files import write
from unshuffle.experiments.problem import Problem

FORMAT = "unshuffle-checkpoint-1"


@dataclass(frozen=True)
class Progress:
    """How far a run has come: steps taken, and seconds that they took, over all its sittings."""

    step: int = 0
    seconds: float = 0.0


def save(path: Path, model: nn.Module, optimiser: torch.optim.Optimizer, progress: Progress) -> None:
    tensors = {f"model.{name}": value for name, value in model.state_dict().items()}
    for number, state in optimiser.state_dict()["state"].items():
        tensors |= {f"optimiser.{number}.{name}": value for name, value in state.items()}
    held = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    write(path, to_bytes(held, {"format": FORMAT, "progress": json.dumps(asdict(progress))}))


def load(path: Path, model: nn.Module, optimiser: torch.optim.Optimizer) -> Progress:
    """Put a checkpoint into a model and its optimiser, which must be the ones that it was made of."""
    tensors, metadata = read(path)
    if metadata.get("format") != FORMAT:
        raise Problem(f"{path} is not a checkpoint of this version ({FORMAT}); remove it to start again")
    progress = Progress(**json.loads(metadata["progress"]))
    weights: dict[str, Tensor] = {}
    states: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        kind, _, rest = name.partition(".")
        if kind == "model":
            weights[rest] = value
        else:
            number, _, entry = rest.partition(".")
            states.setdefault(int(number), {})[entry] = value
    load_weights(path, model, weights)
    optimiser.load_state_dict({"state": states, "param_groups": optimiser.state_dict()["param_groups"]})
    for parameter, state in optimiser.state.items():
        for name, value in state.items():
            if value.shape == parameter.shape:  # fused steps walk through memory, which must be laid out alike
                state[name] = torch.empty_like(parameter).copy_(value)
    return progress


def load_weights(path: Path, model: nn.Module, weights: dict[str, Tensor]) -> None:
    """Weights of exactly this model, or a message that says where they differ."""
    own = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    found = {name: tuple(value.shape) for name, value in weights.items()}
    if own != found:
        name = min(name for name in own | found if own.get(name) != found.get(name))
        raise Problem(
            f"{path} holds the weights of another model: {name} is {found.get(name, 'missing')}, "
            f"this model has {own.get(name, 'none')}"
        )
    model.load_state_dict(weights)


def read(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors and the metadata of a safetensors file."""
    try:
        with safe_open(path, "pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        raise Problem(f"{path} cannot be read as safetensors (truncated, or something else): {error}") from error
