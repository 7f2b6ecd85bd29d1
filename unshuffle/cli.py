"""The commands: parsing and printing only. What they do is in `experiments`."""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from typer.exceptions import TyperException

from unshuffle.experiments.problem import Problem
from unshuffle.version import __version__


def _help(context: typer.Context) -> None:
    """A command without its subcommand explains itself."""
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit


def _group(text: str) -> typer.Typer:
    return typer.Typer(callback=_help, invoke_without_command=True, help=text)


app = typer.Typer(
    name="unshuffle",
    help="Learn the order that a set has lost: train, evaluate and reproduce the experiments of the paper.",
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
train_app = _group("Train one model on one task; it can be killed and resumed.")
reproduce_app = _group("Train every cell of a table that has no record yet.")
table_app = _group("Our records beside the paper's numbers.")
app.add_typer(train_app, name="train")
app.add_typer(reproduce_app, name="reproduce")
app.add_typer(table_app, name="table")

EPOCHS = "Times through the training set; a checkpoint is written after each, and every minute."
MODEL = "lin-assign, po-u, po-la (the paper's) or neighbours (ours)."
RUN_DIR = "Where config, weights, metrics and record go [default: runs/ and the name of the cell]."

Model = Annotated[str, typer.Option(help=MODEL)]
Epochs = Annotated[int | None, typer.Option(help=EPOCHS)]
BatchSize = Annotated[int | None, typer.Option(help="Sets in a batch, of each process.")]
Lr = Annotated[float | None, typer.Option(help="Learning rate of Adam.")]
Steps = Annotated[int | None, typer.Option(help="T, steps of the inner descent.")]
Clip = Annotated[float | None, typer.Option(help="Clip the gradient to this norm.")]
Seed = Annotated[int, typer.Option(help="Of weights and batches.")]
Device = Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1, mps … [default: the best there is]")]
Precision = Annotated[str, typer.Option(help="float32, or bf16 where the device has it; the descent stays float32.")]
Compile = Annotated[bool, typer.Option("--compile", help="Compile the model; worth it for long runs.")]
RunDirectory = Annotated[Path | None, typer.Option(help=RUN_DIR)]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the run in --run-dir, to the same result.")]
Tensorboard = Annotated[bool, typer.Option("--tensorboard", help="Write TensorBoard logs beside metrics.jsonl.")]
DataRoot = Annotated[Path | None, typer.Option(help="Folder of datasets in the hub's layout; or set UNSHUFFLE_DATA.")]
Limit = Annotated[int | None, typer.Option(help="Use only so many images of each split.")]
Dataset = Annotated[str, typer.Option(help="mnist, cifar10, tiny-imagenet, or a folder of images.")]
Results = Annotated[Path, typer.Option(help="Folder of the records.")]
Markdown = Annotated[bool, typer.Option("--markdown", help="As Markdown, for a README.")]
Runs = Annotated[Path, typer.Option(help="Folder for the runs on the way, which a killed command goes on from.")]


def _run(name: str, chosen: dict[str, Any], running: dict[str, Any], root: Path | None = None) -> None:
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


@train_app.command("sorting")
def train_sorting(
    size: Annotated[int, typer.Option(help="Numbers in a set, 5 to 1024.")] = 10,
    model: Model = "po-u",
    epochs: Epochs = None,
    batch_size: BatchSize = None,
    limit: Annotated[int | None, typer.Option(help="Use only so many sets, in an epoch and of each test.")] = None,
    lr: Lr = None,
    steps: Steps = None,
    clip: Clip = None,
    seed: Seed = 0,
    device: Device = None,
    precision: Precision = "float32",
    compile: Compile = False,
    run_dir: RunDirectory = None,
    resume: Resume = False,
    tensorboard: Tensorboard = False,
) -> None:
    """Learn to sort numbers from [0, 1]; tested on the paper's seven intervals and on other sizes."""
    chosen = {"size": size, "model": model, "epochs": epochs, "batch_size": batch_size, "limit": limit, "lr": lr}
    chosen |= {"steps": steps, "clip": clip, "seed": seed}
    running = {"device": device, "precision": precision, "compile": compile, "run_dir": run_dir, "resume": resume}
    _run("sorting", chosen, running | {"tensorboard": tensorboard})


@train_app.command("mosaic")
def train_mosaic(
    dataset: Dataset = "mnist",
    side: Annotated[int, typer.Option(help="Tiles along each side of the image.")] = 3,
    model: Model = "po-la",
    epochs: Epochs = None,
    batch_size: BatchSize = None,
    lr: Lr = None,
    steps: Steps = None,
    clip: Clip = None,
    seed: Seed = 0,
    limit: Limit = None,
    data_root: DataRoot = None,
    device: Device = None,
    precision: Precision = "float32",
    compile: Compile = False,
    run_dir: RunDirectory = None,
    resume: Resume = False,
    tensorboard: Tensorboard = False,
) -> None:
    """Learn to put the shuffled tiles of an image back in their places."""
    chosen = {"dataset": dataset, "side": side, "model": model, "epochs": epochs, "batch_size": batch_size, "lr": lr}
    chosen |= {"steps": steps, "clip": clip, "seed": seed, "limit": limit}
    running = {"device": device, "precision": precision, "compile": compile, "run_dir": run_dir, "resume": resume}
    _run("mosaic", chosen, running | {"tensorboard": tensorboard}, data_root)


@app.command("evaluate")
def evaluate_run(
    run_dir: Annotated[Path, typer.Argument(help="A finished run: it holds config.json and model.safetensors.")],
    data_root: DataRoot = None,
    device: Device = None,
    update: Annotated[bool, typer.Option("--update", help="Put what was measured into the run's record.json.")] = False,
) -> None:
    """Measure a trained model again, on the test set."""
    from unshuffle.experiments import evaluation, tables
    from unshuffle.experiments.data import data_root as root_of

    metrics = evaluation.evaluate(run_dir, device, root_of(data_root))
    Console().print(tables.of_metrics(metrics))
    if update:
        evaluation.update(run_dir, metrics)


@reproduce_app.command("sorting")
def reproduce_sorting(
    sizes: Annotated[str, typer.Option(help="Separated by commas.")] = "5,10,15,80,100,120,512,1024",
    models: Annotated[str, typer.Option(help=f"Separated by commas: {MODEL}")] = "po-u",
    epochs: Epochs = None,
    results: Results = Path("results"),
    runs: Runs = Path("runs"),
    device: Device = None,
) -> None:
    """The sorting table: the paper's sizes."""
    cells = [{"size": size, "model": model} for model, size in product(_names(models), _numbers("--sizes", sizes))]
    _reproduce("sorting", cells, {"epochs": epochs}, results, {"run_dir": runs, "device": device})


@reproduce_app.command("mosaic")
def reproduce_mosaic(
    datasets: Annotated[str, typer.Option(help="Separated by commas.")] = "mnist,cifar10",
    sides: Annotated[str, typer.Option(help="Separated by commas.")] = "2,3,4,5",
    models: Annotated[str, typer.Option(help=f"Separated by commas: {MODEL}")] = "lin-assign,po-u,po-la,neighbours",
    epochs: Epochs = None,
    limit: Limit = None,
    results: Results = Path("results"),
    runs: Runs = Path("runs"),
    data_root: DataRoot = None,
    device: Device = None,
    precision: Precision = "float32",
    compile: Compile = False,
) -> None:
    """The mosaic tables: the paper's three models and ours."""
    names = product(_names(models), _names(datasets), _numbers("--sides", sides))
    cells = [{"dataset": dataset, "side": side, "model": model} for model, dataset, side in names]
    running = {"run_dir": runs, "device": device, "precision": precision, "compile": compile}
    _reproduce("mosaic", cells, {"epochs": epochs, "limit": limit}, results, running, data_root)


def _reproduce(
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


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _numbers(option: str, text: str) -> list[int]:
    try:
        return [int(name) for name in _names(text)]
    except ValueError:
        raise Problem(f"{option} takes whole numbers separated by commas, got {text!r}") from None


@table_app.command("sorting")
def table_sorting(results: Results = Path("results"), markdown: Markdown = False) -> None:
    """Share of sets sorted perfectly, by size and interval."""
    _tables("sorting", results, markdown)


@table_app.command("mosaic")
def table_mosaic(results: Results = Path("results"), markdown: Markdown = False) -> None:
    """Error and accuracy of re-assembled images, by dataset and side."""
    _tables("mosaic", results, markdown)


def _tables(name: str, results: Path, markdown: bool) -> None:
    from unshuffle.experiments import tables

    for table in tables.of(name, results):
        if markdown:
            print(table.markdown())
        else:
            Console().print(table.rich())


def _version(asked: bool) -> None:
    if asked:
        print(f"unshuffle {__version__}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Say it, stop.")] = False,
) -> None:
    _help(context)


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
