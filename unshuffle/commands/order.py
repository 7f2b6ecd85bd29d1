"""Rank items by comparisons of two."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from unshuffle.experiments.problem import Problem


def order_file(
    file: Annotated[Path, typer.Argument(help="CSV in UTF-8; commas, semicolons or tabs.")],
    out: Annotated[Path | None, typer.Option(help="Write the ranking there too, as CSV.")] = None,
    seconds: Annotated[float, typer.Option(min=0.01, max=86_400, help="Search no longer than this.")] = 5.0,
    seed: Annotated[
        int, typer.Option(min=0, max=2**63 - 1, help="Of the search; the same seed, the same ranking.")
    ] = 0,
) -> None:
    """Rank items by comparisons of two: games, votes, tastings.

    FILE holds one comparison a line, winner first, perhaps with a count:

    \b
        winner,loser,count
        tea,coffee,3
        coffee,water,2
        water,tea,1

    or a square table with names: how strongly the row is preferred to the
    column, 0 or nothing for not at all; the diagonal is not read:

    \b
        ,tea,coffee,water
        tea,0,3,0
        coffee,0,0,2
        water,1,0,0

    Both give tea, coffee, water, which contradicts the last comparison only.

    The ranking is the order whose contradicted comparisons weigh least, of all
    that the search finds. Score is the share of its comparisons that an item
    wins, by weight. It explains the ranking but does not make it: it need not
    fall from place to place.
    """
    from unshuffle.experiments.comparisons import read_comparisons
    from unshuffle.experiments.files import write
    from unshuffle.experiments.ranking import rank

    comparisons = read_comparisons(file)
    if out is not None and out.exists() and out.samefile(file):
        raise Problem(f"--out {out} would overwrite the comparisons; name another file")
    ranking = rank(comparisons, seconds, seed)
    table = Table()
    for name in ("place", "name", "score", "won", "lost"):
        table.add_column(name, justify="left" if name == "name" else "right", overflow="fold")
    for place, name, score, won, lost in ranking.rows():
        # As Text: a name is not markup
        table.add_row(str(place), Text(name), f"{score:.1%}", f"{won:g}", f"{lost:g}")
    console = Console()
    console.print(table)
    count, weight = ranking.contradicted()
    total = float(comparisons.weights.sum())
    summary = f"{count:,} of {len(comparisons.weights):,} comparisons contradict the ranking"
    console.print(
        f"{summary}: {weight:g} of {total:g} in weight, {weight / total:.1%}.", highlight=False, soft_wrap=True
    )
    if out is not None:
        write(out, ranking.csv())
        console.print("ranking:", Text(str(out)), highlight=False, soft_wrap=True)
