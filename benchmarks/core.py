"""The core against the literal version of the paper and against the floor: `python -m benchmarks.core`.

One table: median milliseconds of forward and backward, ratios, and the peak memory of one call in a process of its
own. The floor is what cannot be avoided: the bare batched matrix products of the descent, or the factorised first
layer and one pass over the hidden values of all pairs. All candidates of a row take turns in one process.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

import unshuffle as us
from benchmarks import literal
from benchmarks.measure import forward_backward, interleaved, peak_memory
from benchmarks.table import save

Build = Callable[[], Callable[[], None]]


@dataclass(frozen=True)
class Case:
    """One row: how to build each candidate, and the ratios to the literal version that issue and README ask for."""

    name: str
    literal: Build
    ours: Build
    compiled: Build
    floor: Build
    asked: str


def descent_costs(batch: int, relations: int, size: int) -> Tensor:
    torch.manual_seed(0)
    costs = torch.randn(batch, relations, size, size)
    return (costs - costs.mT).requires_grad_()


def literal_descent(batch: int, structure: us.Lattice, size: int, steps: int) -> Callable[[], None]:
    costs, step_size = descent_costs(batch, len(structure.relations), size), torch.ones((), requires_grad=True)
    gradient = literal.GridGradient(*structure.shape) if structure.shape else literal.sequence_gradient
    return forward_backward(lambda: literal.descend(costs, gradient, steps, step_size), [costs, step_size])


def our_descent(batch: int, structure: us.Lattice, size: int, steps: int, compiled: bool = False) -> Callable[[], None]:
    costs, step_size = descent_costs(batch, len(structure.relations), size), torch.ones((), requires_grad=True)
    descend = torch.compile(us.descend, fullgraph=True) if compiled else us.descend
    return forward_backward(lambda: descend(costs, structure, steps=steps, step_size=step_size), [costs, step_size])


def bare_products(batch: int, structure: us.Lattice, size: int, steps: int) -> Callable[[], None]:
    """One product a step, and the two of its backward pass."""
    width = size * len(structure.relations)
    left = torch.randn(batch, size, width, requires_grad=True)
    right = torch.randn(batch, width, size, requires_grad=True)
    grad = torch.randn(batch, size, size)

    def call() -> None:
        left.grad = right.grad = None
        for _ in range(steps):
            torch.bmm(left, right).backward(grad)

    return call


def literal_pairs(batch: int, size: int, features: int, hidden: int, relations: int) -> Callable[[], None]:
    torch.manual_seed(0)
    cost = literal.PairwiseCost(features, hidden, relations)
    x = torch.randn(batch, size, features, requires_grad=True)
    return forward_backward(lambda: cost(x), [x, *cost.parameters()])


def our_pairs(
    batch: int, size: int, features: int, hidden: int, structure: us.Lattice, compiled: bool = False
) -> Callable[[], None]:
    torch.manual_seed(0)
    cost = us.PairwiseCost(features, hidden, structure)
    x = torch.randn(batch, size, features, requires_grad=True)
    call = torch.compile(cost, fullgraph=True) if compiled else cost
    return forward_backward(lambda: call(x), [x, *cost.parameters()])


def bare_pairs(batch: int, size: int, features: int, hidden: int) -> Callable[[], None]:
    """The two halves of the first layer with their gradients, and one write of a cache-sized block for all pairs."""
    x, weight = torch.randn(batch * size, features), torch.randn(features, 2 * hidden)
    grad = torch.randn(batch * size, 2 * hidden)
    block = torch.randn(2**18)
    blocks = max(1, batch * size * size * hidden // block.numel())

    def call() -> None:
        x @ weight, grad @ weight.T, x.T @ grad
        for _ in range(blocks):
            block.relu_()

    return call


def literal_whole(batch: int, size: int, hidden: int, steps: int) -> Callable[[], None]:
    cost = literal.PairwiseCost(1, hidden, 1)
    x, step_size = torch.rand(batch, size, 1), torch.ones((), requires_grad=True)
    return forward_backward(
        lambda: literal.descend(cost(x), literal.sequence_gradient, steps, step_size), [*cost.parameters(), step_size]
    )


def our_whole(batch: int, size: int, hidden: int, steps: int, compiled: bool = False) -> Callable[[], None]:
    structure = us.Sequence()
    layer = us.Arrange(structure, us.PairwiseCost(1, hidden, structure), steps=steps)
    x = torch.rand(batch, size, 1)
    call = torch.compile(layer, fullgraph=True) if compiled else layer
    return forward_backward(lambda: call(x).soft, list(layer.parameters()))


def descent_case(name: str, batch: int, structure: us.Lattice, size: int, steps: int, asked: str) -> Case:
    arguments = (batch, structure, size, steps)
    return Case(
        f"descent, {name}, T={steps}",
        partial(literal_descent, *arguments),
        partial(our_descent, *arguments),
        partial(our_descent, *arguments, compiled=True),
        partial(bare_products, *arguments),
        asked,
    )


def pairs_case(name: str, batch: int, size: int, features: int, hidden: int, structure: us.Lattice, asked: str) -> Case:
    return Case(
        f"PairwiseCost, {name}, {features} features, {hidden} hidden",
        partial(literal_pairs, batch, size, features, hidden, len(structure.relations)),
        partial(our_pairs, batch, size, features, hidden, structure),
        partial(our_pairs, batch, size, features, hidden, structure, compiled=True),
        partial(bare_pairs, batch, size, features, hidden),
        asked,
    )


CASES = [
    descent_case("32 grids 5×5", 32, us.Grid(5, 5), 25, 4, "≥ 3×, ≥ 6×"),
    descent_case("112 sequences of 100", 112, us.Sequence(), 100, 3, "≥ 2×, ≥ 2×"),
    descent_case("2 sequences of 1024", 2, us.Sequence(), 1024, 6, "≤ 1.25 floors"),
    pairs_case("112 sets of 100", 112, 100, 13, 128, us.Sequence(), "≥ 40×, ≥ 40×"),
    pairs_case("32 sets of 25 on a grid", 32, 25, 576, 64, us.Grid(5, 5), "≥ 40×, ≥ 80×"),
    Case(
        "PairwiseCost + descent, 4 sequences of 1024, 16 hidden, T=6",
        partial(literal_whole, 4, 1024, 16, 6),
        partial(our_whole, 4, 1024, 16, 6),
        partial(our_whole, 4, 1024, 16, 6, compiled=True),
        partial(bare_products, 4, us.Sequence(), 1024, 6),
        "memory ≤ ¼",
    ),
]


def row(case: Case, *, with_compiled: bool, with_memory: bool) -> list[str]:
    builds = {"literal": case.literal, "ours": case.ours, "floor": case.floor}
    if with_compiled:
        builds["compiled"] = case.compiled
    seconds = interleaved({name: build() for name, build in builds.items()})
    torch.compiler.reset()
    every, mine = ("literal", "ours", "compiled", "floor"), ("ours", "compiled")
    peaks = {name: peak_memory(build) / 2**20 for name, build in builds.items() if with_memory}
    return [
        case.name,
        *(f"{seconds[name] * 1e3:.1f}" if name in seconds else "–" for name in every),
        *(f"{seconds['literal'] / seconds[name]:.1f}×" if name in seconds else "–" for name in mine),
        *(f"{seconds[name] / seconds['floor']:.2f}" if name in seconds else "–" for name in mine),
        *(f"{peaks[name]:.0f}" if name in peaks else "–" for name in every[:3]),
        case.asked,
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-compile", action="store_true", help="leave the compiled version out, which takes minutes")
    parser.add_argument("--no-memory", action="store_true", help="leave the peak memory out")
    parser.add_argument("--only", type=int, help="one row, by its number from 0")
    parser.add_argument("--out", type=Path, help="write the table there too, as JSON")
    arguments = parser.parse_args()
    header = ["case", "literal ms", "ours ms", "compiled ms", "floor ms", "ours", "compiled", "ours/floor"]
    header += ["compiled/floor", "literal MiB", "ours MiB", "compiled MiB", "asked"]
    print("| " + " | ".join(header) + " |\n|" + "---|" * len(header))
    rows = []
    for number, case in enumerate(CASES):
        if arguments.only in (None, number):
            cells = row(case, with_compiled=not arguments.no_compile, with_memory=not arguments.no_memory)
            print("| " + " | ".join(cells) + " |", flush=True)
            rows.append(dict(zip(header, cells, strict=True)))
    save(rows, arguments.out)


if __name__ == "__main__":
    main()
