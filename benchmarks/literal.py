"""The method as the paper and its appendix describe it, written straightforwardly: what we are measured against.

Pairs are concatenated and pushed through the whole network in both orders, a grid costs one matrix product for each of
its rows and columns, and autograd records every normalisation. Images are prepared one by one. Tests check that it
computes what `unshuffle` computes, so that the benchmarks compare the same thing.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate, mse_loss


def sinkhorn(scores: Tensor, iterations: int = 4) -> Tensor:
    """Appendix B, with the exp-normalise trick: rows, then columns, divided by their sums."""
    soft = (scores - scores.amax(-1, keepdim=True)).exp()
    for _ in range(iterations):
        soft = soft / soft.sum(-1, keepdim=True)
        soft = soft / soft.sum(-2, keepdim=True)
    return soft


def suffix_minus_prefix(soft: Tensor) -> Tensor:
    """B of section 2.2: B_jq = Σ_{k > q} P_jk − Σ_{k < q} P_jk."""
    running = soft.cumsum(-1)
    after = running[..., -1:] - running
    before = running - soft
    return after - before


def sequence_gradient(costs: Tensor, soft: Tensor) -> Tensor:
    """∂c/∂P = 2 C B for a sequence: costs (batch, 1, N, N), soft (batch, N, N)."""
    return 2 * costs[:, 0] @ suffix_minus_prefix(soft)


class GridGradient:
    """∂c/∂P for a grid: every column and every row is a permutation problem of its own (section 2.4)."""

    def __init__(self, rows: int, cols: int) -> None:
        self.rows, self.cols = rows, cols

    def __call__(self, costs: Tensor, soft: Tensor) -> Tensor:
        grid = soft.unflatten(-1, (self.rows, self.cols))
        down = [2 * costs[:, 0] @ suffix_minus_prefix(grid[..., col]) for col in range(self.cols)]
        along = [2 * costs[:, 1] @ suffix_minus_prefix(grid[..., row, :]) for row in range(self.rows)]
        return (torch.stack(down, -1) + torch.stack(along, -2)).flatten(-2)


def descend(costs: Tensor, gradient: object, steps: int, step_size: Tensor, start: Tensor | None = None) -> Tensor:
    """Appendix A: costs (batch, R, N, N) of any scale, antisymmetric."""
    costs = costs / torch.linalg.vector_norm(costs, dim=(-2, -1), keepdim=True)
    scores = torch.zeros_like(costs[:, 0]) if start is None else start
    for _ in range(steps):
        soft = sinkhorn(scores)
        scores = scores - step_size * gradient(costs, soft)  # type: ignore[operator]
    return sinkhorn(scores)


class PairwiseCost(nn.Module):
    """F(a, b) = f(a, b) − f(b, a), with f a two-layer network on the concatenation of every pair."""

    def __init__(self, features: int, hidden: int, relations: int) -> None:
        super().__init__()
        self.f = nn.Sequential(nn.Linear(2 * features, hidden), nn.ReLU(), nn.Linear(hidden, relations))

    def forward(self, x: Tensor) -> Tensor:
        size = x.shape[1]
        first = x[:, :, None].expand(-1, -1, size, -1)
        second = x[:, None].expand(-1, size, -1, -1)
        costs = self.f(torch.cat([first, second], -1)) - self.f(torch.cat([second, first], -1))
        return costs.permute(0, 3, 1, 2)  # (batch, N, N, relations) -> (batch, relations, N, N)


class Mosaic(nn.Module):
    """The paper's PO-U for image mosaics (appendix E.2): tiles (batch, N, c, h, w) in, softly arranged tiles out."""

    def __init__(self, side: int, channels_in: int, size: int, channels: int = 64, hidden: int = 64) -> None:
        super().__init__()
        self.side = side
        self.encoder = nn.Sequential(
            nn.Conv2d(channels_in, channels, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()
        )
        self.cost = PairwiseCost(channels * (size // 2) ** 2, hidden, relations=2)
        self.step_size = nn.Parameter(torch.ones(()))

    def forward(self, tiles: Tensor) -> Tensor:
        batch, size = tiles.shape[:2]
        features = self.encoder(tiles.flatten(0, 1)).view(batch, size, -1)
        soft = descend(self.cost(features), GridGradient(self.side, self.side), 4, self.step_size)
        return (soft.mT @ tiles.flatten(2)).view_as(tiles)


def step(model: Mosaic, optimiser: torch.optim.Optimizer, tiles: Tensor, images: Tensor) -> None:
    """One step of training, to the mean squared error of the tiles in their places."""
    loss = mse_loss(model(tiles), images)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()


def prepare(
    pixels: Tensor, side: int, size: int, mean: Tensor, std: Tensor, orders: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """A batch of images (batch, c, h, w), bytes: each normalised, rescaled, cut, shuffled, and then all stacked.

    Returns the shuffled tiles and the tiles in their places, (batch, N, c, h, w). `orders` fixes the shuffling.
    """
    shuffled, placed = [], []
    for number, image in enumerate(pixels):
        scaled = image.float().div(255).sub(mean[:, None, None]).div(std[:, None, None])
        scaled = interpolate(scaled[None], (size, size), mode="bilinear", antialias=True)[0]
        tile = size // side
        tiles = [
            scaled[:, row * tile : (row + 1) * tile, col * tile : (col + 1) * tile]
            for row in range(side)
            for col in range(side)
        ]
        order = torch.randperm(len(tiles)) if orders is None else orders[number]
        placed.append(torch.stack(tiles))
        shuffled.append(torch.stack([tiles[k] for k in order]))
    return torch.stack(shuffled), torch.stack(placed)
