"""What the commands of every task are made of: train one run, reproduce a table, print it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from unshuffle.experiments.problem import Problem


def show_help(context: typer.Context) -> None:
    """A command without its subcommand explains itself."""
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit


def group(text: str) -> typer.Typer:
    return typer.Typer(callback=show_help, invoke_without_command=True, help=text)


train_app = group("Train one model on one task; it can be killed and resumed.")
reproduce_app = group("Train every cell of a table that has no record yet.")
table_app = group("Our records beside the paper's numbers.")


def run(name: str, chosen: dict[str, Any], running: dict[str, Any], root: Path | None = None) -> None:
    """One training, and what came out of it."""
    from unshuffle.experiments import processes, tables, training
    from unshuffle.experiments.data import data_root
    from unshuffle.experiments.tasks import experiment

    processes.start_missing()
    config = _settings(name, chosen)
    running["run_dir"] = running["run_dir"] or Path("runs") / config.cell
    how = training.Running(**running)
    files = training.RunDir(how.run_dir)
    files.check(training.describe(name, config), how.resume)
    accelerator = training.accelerator_for(how)
    console = Console()
    task = experiment(name).task(config, accelerator.device, data_root(root))
    record = training.train(task, how, accelerator, console)
    if accelerator.is_main_process:
        console.print(tables.of_metrics(record.metrics))
        console.print(f"record: {files.record}", highlight=False, soft_wrap=True)


def _settings(name: str, options: dict[str, Any]) -> Any:
    """The experiment's settings: what was not given keeps its default."""
    from unshuffle.experiments.tasks import experiment

    try:
        return experiment(name).settings(**{key: value for key, value in options.items() if value is not None})
    except (ValueError, TypeError) as error:
        raise Problem(str(error)) from error


def reproduce_cells(
    name: str,
    cells: list[dict[str, Any]],
    chosen: dict[str, Any],
    results: Path,
    running: dict[str, Any],
    root: Path | None = None,
) -> None:
    from unshuffle.experiments import processes
    from unshuffle.experiments.data import data_root
    from unshuffle.experiments.reproduce import reproduce
    from unshuffle.experiments.training import Running

    processes.start_missing()
    configs = [_settings(name, cell | chosen) for cell in cells]
    reproduce(name, configs, results, Running(**running), data_root(root), Console())


def names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def numbers(option: str, text: str) -> list[int]:
    try:
        return [int(name) for name in names(text)]
    except ValueError:
        raise Problem(f"{option} takes whole numbers separated by commas, got {text!r}") from None


def print_tables(name: str, results: Path, markdown: bool) -> None:
    from unshuffle.experiments import tables

    for table in tables.of(name, results):
        if markdown:
            print(table.markdown())
        else:
            Console().print(table.rich())
