"""Make data sets, and bring published ones into the form that training reads."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from unshuffle.commands.common import group
from unshuffle.commands.options import DataRoot, Seed
from unshuffle.experiments.problem import Problem

data_app = group("Make data sets, and convert published ones.")

Out = Annotated[Path, typer.Option(help="Where to.")]


def _say(text: str) -> None:
    Console().print(text, highlight=False, soft_wrap=True)


@data_app.command("scenes")
def scenes(
    out: Out,
    questions: Annotated[int, typer.Option(help="To train on.")] = 20_000,
    held_out: Annotated[int, typer.Option(help="To test with, about other scenes.")] = 5_000,
    features: Annotated[int, typer.Option(help="Of a proposal.")] = 32,
    noise: Annotated[float, typer.Option(help="Standard deviation of each feature; its own is about 1.7.")] = 0.4,
    seed: Seed = 0,
) -> None:
    """Synthetic scenes of overlapping object proposals, with questions and ten answers to each, as in VQA v2."""
    from unshuffle.experiments.vqa.scenes import Scenes, write

    try:
        config = Scenes(questions, held_out, features, noise, seed)
    except (ValueError, TypeError) as error:
        raise Problem(str(error)) from error
    write(out, config)
    _say(f"{out}: {questions:,} questions to train on, {held_out:,} to test with")


@data_app.command("cocoqa")
def cocoqa(out: Out, data_root: DataRoot = None) -> None:
    """COCO-QA on COCO's own boxes, from the folder cocoqa of the data root."""
    from unshuffle.experiments.data import data_root as root_of
    from unshuffle.experiments.vqa.coco import convert

    root = root_of(data_root)
    if root is None:
        raise Problem("COCO-QA is not downloaded: pass --data-root DIR, or set UNSHUFFLE_DATA, with a folder cocoqa")
    counts = convert(root / "cocoqa", out)
    _say(f"{out}: {counts['train']:,} questions to train on, {counts['val']:,} to test with")


@data_app.command("features")
def features(
    sources: Annotated[list[Path], typer.Argument(help="TSV files of bottom-up features.")],
    out: Annotated[Path, typer.Option(help="The HDF5 file, such as DIR/train.hdf5; its index is written beside it.")],
    questions: Annotated[Path | None, typer.Option(help="Keep only the images that this file asks about.")] = None,
) -> None:
    """Bottom-up features from their original TSV files to the HDF5 layout that BAN reads."""
    from unshuffle.experiments.vqa.questions import images_of
    from unshuffle.experiments.vqa.tsv import convert

    count = convert(sources, out, None if questions is None else images_of(questions))
    _say(f"{out}: {count:,} images")


@data_app.command("index")
def index(
    source: Annotated[Path, typer.Argument(help="An index that was pickled, such as DIR/train_imgid2idx.pkl.")],
    out: Annotated[Path | None, typer.Option(help="[default: the same name with .json]")] = None,
) -> None:
    """An old index of images to JSON; of the pickle nothing is built but plain containers."""
    from unshuffle.experiments.vqa.features import write_index
    from unshuffle.experiments.vqa.pickled import read_index

    target = out or source.with_suffix(".json")
    rows = read_index(source)
    write_index(target, rows)
    _say(f"{target}: {len(rows):,} images")
