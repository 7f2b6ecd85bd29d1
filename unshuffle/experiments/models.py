"""The models of the tables, by name: which start, how many steps, which relations."""

from __future__ import annotations

from dataclasses import dataclass

from unshuffle.experiments.problem import Problem


@dataclass(frozen=True)
class Model:
    """A row of a table.

    linear: start from a learned linear map of each element instead of uniform.
    descends: make the task's number of steps, or none.
    neighbours: add the neighbour relations, with a deeper pair network, and learn the positions by cross-entropy.
    """

    title: str
    linear: bool
    descends: bool
    neighbours: bool = False


MODELS = {
    "lin-assign": Model("LinAssign", linear=True, descends=False),
    "po-u": Model("PO-U", linear=False, descends=True),
    "po-la": Model("PO-LA", linear=True, descends=True),
    "neighbours": Model("neighbours (ours)", linear=True, descends=True, neighbours=True),
}


def named(name: str) -> Model:
    if name not in MODELS:
        raise Problem(f"unknown model {name!r}; there are {', '.join(MODELS)}")
    return MODELS[name]
