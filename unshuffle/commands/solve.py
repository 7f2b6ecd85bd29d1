"""Put scrambled pictures back together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from unshuffle.experiments.problem import Problem

if TYPE_CHECKING:
    from unshuffle.pretrained import Jigsaw
    from unshuffle.solver import Solution

IMAGES = "Pictures in any format that Pillow reads, or folders of them."
OUT = "Where the solved picture goes; a folder if there are several (default: NAME-solved.png, here)."


@dataclass(frozen=True)
class Solved:
    solution: Solution
    out: Path
    exact: bool | None  # None: nobody knows, it came scrambled


def solve_pictures(
    images: Annotated[list[Path], typer.Argument(help=IMAGES, metavar="IMAGE...", show_default=False)],
    rows: Annotated[int, typer.Option(help="Rows of pieces.")] = 3,
    cols: Annotated[int | None, typer.Option(help="Columns of pieces (default: as many as rows).")] = None,
    scramble: Annotated[int | None, typer.Option(help="Scramble first, with this seed.", metavar="SEED")] = None,
    out: Annotated[Path | None, typer.Option(help=OUT)] = None,
    steps_gif: Annotated[Path | None, typer.Option(help="Animate the descent, as a GIF; of one picture.")] = None,
    seconds: Annotated[float, typer.Option(help="Begin no more descents after that, for each picture.")] = 5.0,
    starts: Annotated[int, typer.Option(help="Descents from different starts.")] = 33,
    seed: Annotated[int, typer.Option(help="Of the starts.")] = 0,
    model: Annotated[Path | None, typer.Option(help="Folder of other weights, as `unshuffle pack` writes.")] = None,
) -> None:
    """Put scrambled pictures back together."""
    from unshuffle.experiments import images as files

    paths = files.pictures_in(images)
    _check_animation(steps_gif, paths)
    targets = files.targets(paths, out)
    weights = None if model is None else _weights(model)
    console = Console()

    def one(path: Path, target: Path) -> Solved:
        solution, exact = _solve(path, rows, cols or rows, scramble, weights, seconds, starts, seed)
        return Solved(solution, files.save(solution.picture, target, paths), exact)

    if len(paths) > 1:
        _solve_all(console, dict(zip(paths, targets, strict=True)), one)
        return
    solved = one(paths[0], targets[0])
    _report(console, paths[0], solved)
    if steps_gif is not None:
        from unshuffle.figures.assembling import save_steps

        save_steps(solved.solution, steps_gif)
        _line(console, "animated", str(steps_gif))


def _check_animation(gif: Path | None, paths: list[Path]) -> None:
    if gif is None:
        return
    if len(paths) > 1:
        raise Problem(f"--steps-gif draws one picture, and there are {len(paths)}")
    if gif.suffix.lower() != ".gif":
        raise Problem(f"--steps-gif writes a GIF: its name must end in .gif, got {gif}")
    if gif.resolve() == paths[0].resolve():
        raise Problem(f"--steps-gif would overwrite {gif}")


def _weights(folder: Path) -> Jigsaw:
    from unshuffle.pretrained import Jigsaw

    if not (folder / "config.json").is_file() or not (folder / "model.safetensors").is_file():
        raise Problem(f"{folder} holds no config.json and model.safetensors, as `unshuffle pack` writes them")
    try:
        return Jigsaw.from_pretrained(folder)
    except Exception as error:  # whatever a damaged file makes its readers raise
        raise Problem(f"the weights in {folder} cannot be read: {error}") from error


def _solve(
    path: Path,
    rows: int,
    cols: int,
    scramble: int | None,
    weights: Jigsaw | None,
    seconds: float,
    starts: int,
    seed: int,
) -> tuple[Solution, bool | None]:
    """The solution, and whether it is to the pixel what was there before it was scrambled."""
    from unshuffle import solver
    from unshuffle.pictures import open_picture, trimmed

    try:
        picture = open_picture(path)
        given = picture if scramble is None else solver.scramble(picture, rows, cols, scramble)[0]
        solution = solver.solve(given, rows, cols, model=weights, seconds=seconds, starts=starts, seed=seed)
        if scramble is None:
            return solution, None
        return solution, solution.picture.tobytes() == trimmed(picture, rows, cols).tobytes()
    except ValueError as error:
        raise Problem(str(error)) from error


def _solve_all(console: Console, targets: dict[Path, Path], one: Callable[[Path, Path], Solved]) -> None:
    """Every picture that can be solved; then a table, and the others in one line."""
    table = Table("picture", "solved", "exact", "least certain tile", "seconds")
    problems: dict[Path, Exception] = {}
    exact: list[bool | None] = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("solving", total=len(targets))
        for path, target in targets.items():
            try:
                solved = one(path, target)
            except (Problem, OSError) as error:
                problems[path] = error
                table.add_row(path.name, str(error), "", "", "")
            else:
                exact.append(solved.exact)
                came_back = {None: "?", True: "yes", False: "no"}[solved.exact]
                least = f"{solved.solution.certainty.min().item():.0%}"
                table.add_row(path.name, str(solved.out), came_back, least, f"{solved.solution.seconds:.2f}")
            progress.advance(task)
    console.print(table)
    if exact and exact[0] is not None:
        _line(console, "exact", f"{sum(map(bool, exact))} of {len(exact)} came back to the pixel")
    if problems:
        first, error = next(iter(problems.items()))
        raise Problem(f"{len(problems)} of {len(targets)} pictures could not be solved; {first}: {error}")


def _report(console: Console, path: Path, solved: Solved) -> None:
    solution = solved.solution
    width, height = solution.picture.width // solution.cols, solution.picture.height // solution.rows
    _line(console, "picture", f"{path}, {solution.rows}×{solution.cols} pieces of {width}×{height} pixels")
    _line(console, "order", _by_rows([str(piece) for piece in solution.order.tolist()], solution.cols))
    _line(console, "certainty", _by_rows([f"{value:.0%}" for value in solution.certainty.tolist()], solution.cols))
    _line(console, "time", f"{solution.seconds:.2f} s")
    if solved.exact is not None:
        _line(console, "exact", "yes: it came back to the pixel" if solved.exact else "no: some pieces are misplaced")
    _line(console, "solved", str(solved.out))


def _by_rows(words: list[str], cols: int) -> str:
    return " / ".join(" ".join(words[first : first + cols]) for first in range(0, len(words), cols))


def _line(console: Console, name: str, text: str) -> None:
    console.print(f"{name:<11}{text}", highlight=False, soft_wrap=True, markup=False)
