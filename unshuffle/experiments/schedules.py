"""Learning rates over a run, as shares of the largest, by name."""

from __future__ import annotations

import math
from collections.abc import Callable

from unshuffle.experiments.problem import Problem


def constant(progress: float) -> float:
    """The paper's."""
    return 1.0


def one_cycle(progress: float) -> float:
    """Rises for a fifth of the time, and falls to nothing along a cosine."""
    rising, falling = progress / 0.2, 0.5 + 0.5 * math.cos(math.pi * (progress - 0.2) / 0.8)
    return max(rising, 0.02) if progress < 0.2 else max(falling, 0.005)


SCHEDULES: dict[str, Callable[[float], float]] = {"constant": constant, "one-cycle": one_cycle}


def schedule(name: str) -> Callable[[float], float]:
    """What multiplies the learning rate, of the share of all steps that is done."""
    if name not in SCHEDULES:
        raise Problem(f"unknown schedule {name!r}; there are {', '.join(SCHEDULES)}")
    return SCHEDULES[name]
