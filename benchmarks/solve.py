"""How many scrambled pictures `us.solve` puts back to the pixel: `python -m benchmarks.solve --data-root DIR`.

Pictures of CIFAR-10's test split, which no shipped model has seen, go the whole way: scrambled, cut, searched, put
together, at their own size and enlarged. Where a picture has equal pieces, any of them is right.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from PIL import Image

import unshuffle as us
from benchmarks.table import save
from unshuffle import shipped
from unshuffle.experiments import data
from unshuffle.pictures import trimmed
from unshuffle.solver import scramble

ASKED = {"3×3": "≥ 92 %", "4×4": "≥ 80 %"}


def row(name: str, pictures: list[Image.Image]) -> dict[str, str]:
    """One grid, at one size."""
    rows, cols = us.load(name).grid.shape
    exact, right, certainty, seconds = [], [], [], []
    for seed, picture in enumerate(pictures):
        shuffled, order = scramble(picture, rows, cols, seed)
        solution = us.solve(shuffled, rows, cols)
        exact.append(solution.picture.tobytes() == trimmed(picture, rows, cols).tobytes())
        right.append(solution.order == order)
        certainty.append(solution.certainty)
        seconds.append(solution.seconds)
    placed, certain = torch.cat(right), torch.cat(certainty)
    grid = f"{rows}×{cols}"
    return {
        "grid": grid,
        "pixels": f"{pictures[0].width}×{pictures[0].height}",
        "pictures": str(len(pictures)),
        "exact": f"{100 * sum(exact) / len(exact):.1f} %",
        "asked": ASKED.get(grid, "–"),
        "tiles in place": f"{100 * placed.double().mean().item():.1f} %",
        "mean certainty": f"{100 * certain.mean().item():.1f} %",
        "of tiles in place": f"{100 * certain[placed].mean().item():.1f} %",
        "of the others": f"{100 * certain[~placed].mean().item():.1f} %" if (~placed).any() else "–",
        "s a picture": f"{torch.tensor(seconds).median().item():.2f}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-root", type=Path, help="folder of datasets in the hub's layout; or set UNSHUFFLE_DATA")
    parser.add_argument("--images", type=int, default=300, help="of the test split, from its first")
    parser.add_argument("--sizes", nargs="+", type=int, default=[32, 128], help="pixels along each side")
    parser.add_argument("--names", nargs="+", default=shipped.names(), help="which weights; all that are shipped")
    parser.add_argument("--out", type=Path, default=Path("results/benchmark-solve.json"))
    arguments = parser.parse_args()
    _, test = data.load("cifar10", root=data.data_root(arguments.data_root))
    originals = [Image.fromarray(pixels.movedim(0, -1).numpy()) for pixels in test.pixels[: arguments.images]]
    rows = []
    for name in arguments.names:
        for size in arguments.sizes:
            enlarged = [image.resize((size, size), Image.Resampling.BICUBIC) for image in originals]
            rows.append(row(name, enlarged))
            if len(rows) == 1:
                print("| " + " | ".join(rows[0]) + " |\n|" + "---|" * len(rows[0]))
            print("| " + " | ".join(rows[-1].values()) + " |", flush=True)
    save(rows, arguments.out)


if __name__ == "__main__":
    main()
