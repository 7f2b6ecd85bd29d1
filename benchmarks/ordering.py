"""Linear ordering problems with known optima: `python -m benchmarks.ordering --bench DIR`.

DIR holds files in the format of LOLIB (n, then n×n integers row by row: find the order p with the largest
Σ_{i<j} W[p_i, p_j]) and `optima.json`, the optimum of each by name. One table: how far each method falls short of the
optima, and how long it takes for one problem. Reading the files is not counted; each method runs once before it counts.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import igraph
import torch
from torch import Tensor

import unshuffle as us
from benchmarks.table import save

STEP_SIZES = (4.0, 10.0, 25.0)


def read_problem(path: Path) -> Tensor:
    """W, (n, n)."""
    size, *numbers = path.read_text().split()
    return torch.tensor([float(number) for number in numbers], dtype=torch.float64).reshape(int(size), int(size))


def value(preferences: Tensor, order: Tensor) -> float:
    """Σ_{i<j} W[p_i, p_j], exact for integers."""
    return preferences[order][:, order].triu(1).sum().item()


def row_sums(preferences: Tensor) -> Tensor:
    """Who is preferred by the largest margin over all others together, first."""
    return (preferences - preferences.T).sum(1).argsort(descending=True)


def soft_descent(preferences: Tensor) -> Tensor:
    """The paper's descent, the best of three step sizes."""
    costs = -preferences.expand(len(STEP_SIZES), 1, -1, -1)
    sizes = torch.tensor(STEP_SIZES).unsqueeze(-1)
    orders = us.assign(us.descend(costs, us.Sequence(), steps=20, step_size=sizes, iterations=20))
    return max(orders, key=lambda order: value(preferences, order))


def descent_and_search(preferences: Tensor) -> Tensor:
    return us.search(-preferences.unsqueeze(0), us.Sequence(), soft_descent(preferences))


def ours(preferences: Tensor) -> Tensor:
    return us.order(-preferences)


def feedback_arc_set(preferences: Tensor) -> Tensor:
    """igraph's heuristic: drop arcs of little weight until no cycle is left, and sort what remains."""
    margins = (preferences - preferences.T).clamp_min(0)
    arcs = margins.nonzero()
    weights = margins[margins > 0].tolist()
    graph = igraph.Graph(len(margins), arcs.tolist(), directed=True)
    graph.delete_edges(graph.feedback_arc_set(weights=weights, method="eades"))
    return torch.tensor(graph.topological_sorting())


METHODS: dict[str, Callable[[Tensor], Tensor]] = {
    "row sums of W − Wᵀ": row_sums,
    "igraph feedback_arc_set (eades)": feedback_arc_set,
    "soft descent, best of three step sizes": soft_descent,
    "soft descent, then us.search": descent_and_search,
    "us.order": ours,
}


def row(name: str, problems: dict[str, Tensor], optima: dict[str, float]) -> dict[str, str]:
    """Mean gap, how many are optimal, and the time."""
    method = METHODS[name]
    method(next(iter(problems.values())))
    gaps, seconds = [], []
    for problem, preferences in problems.items():
        begin = time.perf_counter()
        order = method(preferences)
        seconds.append(time.perf_counter() - begin)
        gaps.append(1 - value(preferences, order) / optima[problem])
    return {
        "method": name,
        "mean gap": f"{sum(gaps) / len(gaps):.4%}",
        "worst gap": f"{max(gaps):.4%}",
        "optimal": f"{sum(gap <= 0 for gap in gaps)} of {len(gaps)}",
        "mean seconds": f"{sum(seconds) / len(seconds):.4f}",
        "longest seconds": f"{max(seconds):.4f}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", type=Path, required=True, help="folder of the problems and optima.json")
    parser.add_argument("--out", type=Path, help="write the table there too, as JSON")
    arguments = parser.parse_args()
    optima = json.loads((arguments.bench / "optima.json").read_text())
    problems = {name: read_problem(arguments.bench / name) for name in sorted(optima)}
    torch.set_num_threads(1)
    rows: list[dict[str, str]] = []
    for name in METHODS:
        cells = row(name, problems, optima)
        if not rows:
            print("| " + " | ".join(cells) + " |\n|" + "---|" * len(cells))
        print("| " + " | ".join(cells.values()) + " |", flush=True)
        rows.append(cells)
    save(rows, arguments.out)


if __name__ == "__main__":
    main()
