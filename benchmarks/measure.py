"""Honest timings in one process: the candidates take turns, so that a busy moment of the machine hits all of them."""

from __future__ import annotations

import multiprocessing
import resource
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from torch import Tensor


def interleaved(
    candidates: Mapping[str, Callable[[], object]], *, seconds: float = 6.0, least: int = 5
) -> dict[str, float]:
    """Median seconds of each candidate, called in turns until the time is up and each has run `least` times."""
    for call in candidates.values():
        call()
        call()
    taken: dict[str, list[float]] = {name: [] for name in candidates}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(next(iter(taken.values()))) < least:
        for name, call in candidates.items():
            start = time.perf_counter()
            call()
            taken[name].append(time.perf_counter() - start)
    return {name: statistics.median(times) for name, times in taken.items()}


def forward_backward(outputs: Callable[[], Tensor], leaves: list[Tensor]) -> Callable[[], None]:
    """One forward and one backward pass, from fresh gradients."""

    def call() -> None:
        for leaf in leaves:
            leaf.grad = None
        outputs().square().sum().backward()

    return call


def _high_water() -> int:
    """The largest resident memory of this process so far, in bytes (Linux; elsewhere the parent's may be included)."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _peak(build: Callable[[], Callable[[], object]], result: multiprocessing.Queue[int]) -> None:
    call = build()
    before = _high_water()
    call()
    result.put(_high_water() - before)


def peak_memory(build: Callable[[], Callable[[], object]]) -> int:
    """Bytes by which one call raises the peak of a fresh process."""
    context = multiprocessing.get_context("spawn")
    result = context.Queue()
    process = context.Process(target=_peak, args=(build, result))
    process.start()
    peak = result.get()
    process.join()
    return peak
