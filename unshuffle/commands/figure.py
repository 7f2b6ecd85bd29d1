"""Draw what a run learned."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unshuffle.commands.options import DataRoot, Device

NAME = "comparison, costs, sensitivity, gradients, steps, step-size or curves."
RUNS = "Folders of runs: one, or for sensitivity, step-size and curves as many as you like."


def draw_figure(
    name: Annotated[str, typer.Argument(help=NAME)],
    run_dirs: Annotated[list[Path], typer.Argument(metavar="RUN_DIR...", help=RUNS)],
    out: Annotated[Path, typer.Option(help="The picture to write, .png or .pdf.")],
    image: Annotated[int | None, typer.Option(help="The test image to begin with [default: 0]")] = None,
    data_root: DataRoot = None,
    device: Device = None,
) -> None:
    """Draw what a run learned: what it compares, where it looks, how images come together."""
    from unshuffle.experiments.data import data_root as root_of
    from unshuffle.figures import drawing, registry
    from unshuffle.figures.runs import RunView

    drawing.check_path(out)
    root = root_of(data_root)
    runs = [RunView(run_dir, device, root) for run_dir in run_dirs]
    drawing.save(registry.figure(name, runs, image), out)
    print(out)
