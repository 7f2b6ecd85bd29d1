"""The page in the browser."""

from __future__ import annotations

import signal
import threading
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from unshuffle.experiments.problem import Problem


def serve_page(
    host: Annotated[str, typer.Option(help="Address to listen at; 0.0.0.0 lets other computers in.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen at.")] = 7860,
    results: Annotated[Path | None, typer.Option(help="Folder of the records [default: the checkout's].")] = None,
) -> None:
    """Open a page in the browser: solve pictures, watch numbers being sorted, read the results."""
    if find_spec("gradio") is None:
        raise Problem("the page needs gradio; pip install 'unshuffle[web]'")
    from unshuffle.web.serve import served

    console = Console()
    console.print("The page opens in a few seconds …")
    done = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: done.set())  # the folder of uploads is removed then, too
    with served(host, port, results) as address:
        console.print(f"Open [bold]{address}[/bold] in a browser; Ctrl-C ends it.", highlight=False)
        with suppress(KeyboardInterrupt):
            done.wait()
