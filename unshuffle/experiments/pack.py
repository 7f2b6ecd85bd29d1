"""From a finished run of the mosaic task to weights that anybody can load: half the size, and nothing else needed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import save as to_bytes

from unshuffle import shipped
from unshuffle.experiments import evaluation
from unshuffle.experiments.files import write, write_json
from unshuffle.experiments.models import named
from unshuffle.experiments.mosaic import Mosaic, MosaicTask
from unshuffle.experiments.problem import Problem
from unshuffle.pretrained import Jigsaw


@dataclass(frozen=True)
class Packed:
    folder: Path
    size: int  # bytes of the weights


def destination(name: str) -> Path:
    """A folder by its path, or a plain name for what is shipped with the package."""
    return shipped.WEIGHTS / name if Path(name).name == name else Path(name)


def pack(run_dir: Path, folder: Path, root: Path | None = None) -> Packed:
    """Write config.json and model.safetensors: the run's weights as float16, its normalisation in the config.

    The training data is read for its mean and standard deviation, which a run does not keep.
    """
    task, model = evaluation.load(run_dir, "cpu", root)
    if not isinstance(task, MosaicTask) or not named(task.config.model).neighbours:
        raise Problem(f"{run_dir} is a run of {task.config.cell}; only the mosaic task's neighbours model is packed")
    jigsaw = with_normalisation(task)
    jigsaw.assembler.load_state_dict(model.state_dict())
    weights = {name: value.to(torch.float16).contiguous() for name, value in jigsaw.state_dict().items()}
    if not all(value.isfinite().all() for value in weights.values()):
        raise Problem(f"{run_dir} has weights that float16 cannot hold")
    content = to_bytes(weights, {"format": "pt"})
    config = jigsaw._hub_mixin_config
    assert isinstance(config, dict)
    write(folder / "model.safetensors", content)
    write_json(folder / "config.json", config)
    return Packed(folder, len(content))


def with_normalisation(task: MosaicTask) -> Jigsaw:
    config: Mosaic = task.config
    return Jigsaw(
        rows=config.side,
        cols=config.side,
        tile=task.tile,
        mean=task.mean.tolist(),
        std=task.std.tolist(),
        channels=config.channels,
        hidden=config.hidden,
        pair_hidden=list(config.pair_hidden),
        steps=config.steps,
    )
