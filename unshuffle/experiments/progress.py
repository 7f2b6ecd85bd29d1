"""What a run shows while it goes on: a bar with the time left in a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

LINE_EVERY = 15.0  # seconds between plain lines


class Display:
    """One task's progress. `note` is what stands behind the bar: loss and metrics."""

    def __init__(self, console: Console, title: str, total: int, done: int) -> None:
        self.console, self.title, self.total, self.first, self.done = console, title, total, done, done
        self.start = self.last = time.monotonic()
        self.bar: Progress | None = None
        if console.is_terminal:
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
            self.bar = Progress(*columns, TimeRemainingColumn(), TextColumn("{task.fields[note]}"), console=console)
            self.task = self.bar.add_task(title, total=total, completed=done, note="")

    def advance(self, note: str) -> None:
        self.done += 1
        if self.bar is not None:
            self.bar.update(self.task, completed=self.done, note=note)
        elif time.monotonic() - self.last >= LINE_EVERY:
            self.last = time.monotonic()
            pace = (self.last - self.start) / (self.done - self.first)
            left = time.strftime("%H:%M:%S", time.gmtime(pace * (self.total - self.done)))
            self.line(f"{self.title}: {self.done}/{self.total} steps, {left} left, {note}")

    def line(self, text: str) -> None:
        self.console.print(text, soft_wrap=True, highlight=False)


@contextmanager
def display(console: Console, title: str, total: int, done: int = 0) -> Iterator[Display]:
    shown = Display(console, title, total, done)
    if shown.bar is None:
        yield shown
    else:
        with shown.bar:
            yield shown
