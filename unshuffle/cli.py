"""The command line: the commands by name, and what happens when one cannot go on. See `commands`."""

from __future__ import annotations

import sys
from typing import Annotated, NoReturn

import typer
from typer.exceptions import TyperException

from unshuffle.commands import classify as _classify  # noqa: F401, registers its commands
from unshuffle.commands import mosaic as _mosaic  # noqa: F401
from unshuffle.commands import sorting as _sorting  # noqa: F401
from unshuffle.commands import vqa as _vqa  # noqa: F401
from unshuffle.commands.common import reproduce_app, show_help, table_app, train_app
from unshuffle.commands.data import data_app
from unshuffle.commands.evaluate import evaluate_run
from unshuffle.commands.figure import draw_figure
from unshuffle.commands.order import order_file
from unshuffle.commands.pack import pack_run
from unshuffle.commands.serve import serve_page
from unshuffle.commands.solve import solve_pictures
from unshuffle.experiments.problem import Problem
from unshuffle.version import __version__

app = typer.Typer(
    name="unshuffle",
    help="Learn the order that a set has lost: train, evaluate and reproduce the experiments of the paper.",
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(train_app, name="train")
app.add_typer(reproduce_app, name="reproduce")
app.add_typer(table_app, name="table")
app.add_typer(data_app, name="data")
app.command("evaluate")(evaluate_run)
app.command("order")(order_file)
app.command("figure")(draw_figure)
app.command("pack")(pack_run)
app.command("serve")(serve_page)
app.command("solve")(solve_pictures)


def _version(asked: bool) -> None:
    if asked:
        print(f"unshuffle {__version__}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Say it, stop.")] = False,
) -> None:
    show_help(context)


def main() -> None:
    """Run a command. What its user can mend is one line on stderr and exit code 2."""
    try:
        code = app(standalone_mode=False)
    except TyperException as error:
        _stop(error.format_message(), 2)
    except (Problem, OSError) as error:  # an OSError is a full disk, or a folder that may not be written
        _stop(str(error), 2)
    except (KeyboardInterrupt, typer.Abort):
        _stop("interrupted; the same command, or train with --resume, goes on from there", 130)
    sys.exit(code if isinstance(code, int) else 0)


def _stop(message: str, code: int) -> NoReturn:
    print("unshuffle: " + " ".join(message.split()), file=sys.stderr)
    sys.exit(code)
