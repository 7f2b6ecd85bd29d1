"""Make the weights of a finished run ready to be shipped or shared."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unshuffle.commands.options import DataRoot

NAME = "A folder, or a plain name: then the weights go into the installed package, where us.load(NAME) finds them."


def pack_run(
    run_dir: Annotated[Path, typer.Argument(help="A finished run of the mosaic task with the neighbours model.")],
    name: Annotated[str, typer.Argument(help=NAME)],
    data_root: DataRoot = None,
) -> None:
    """Write a run's weights as float16 safetensors with a JSON config, for us.load and unshuffle solve."""
    from unshuffle.experiments.data import data_root as root_of
    from unshuffle.experiments.pack import destination, pack

    packed = pack(run_dir, destination(name), root_of(data_root))
    print(f"{packed.folder}: {packed.size / 1e6:.1f} MB of weights")
