"""PairwiseCost: how badly element i stands in each relation to element j (the paper's section 2.3).

An order cost is antisymmetric by construction, F(a, b) = f(a, b) − f(b, a); a neighbour cost is f itself. f is a
multilayer perceptron on the concatenation [a; b]. Its first layer is linear there, so it splits into one map of a
and one of b, W [a; b] = A a + B b, computed once an element; only what follows the first ReLU is paid for every pair.
f(b, a) needs no second evaluation either: over all pairs it is the transpose of f(a, b).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import linear

from unshuffle import checks
from unshuffle.sinkhorn import full_precision
from unshuffle.structures import Lattice, Order

if TYPE_CHECKING:
    from jaxtyping import Float

# Hidden values of pairs that are alive at once, forward and backward: 1 MiB in float32, so that they stay in a
# core's cache. Larger problems are cut into chunks, whose hidden values the backward pass computes again.
CHUNK = 2**18


class PairwiseCost(nn.Module):
    """Learned costs of all pairs of elements, one matrix for each relation of the structure.

    Args:
        features: of an element.
        hidden: width of the hidden layer, or a tuple of widths for a deeper network.
        structure: its relations decide how many outputs there are and which are antisymmetric.

    The last layer has no bias: it would cancel in an order cost, and a neighbour cost is centred by the descent.

    >>> import torch, unshuffle as us
    >>> us.PairwiseCost(3, 16, us.Grid(2, 2))(torch.rand(8, 4, 3)).shape
    torch.Size([8, 2, 4, 4])
    """

    def __init__(self, features: int, hidden: int | tuple[int, ...], structure: Lattice) -> None:
        super().__init__()
        if not isinstance(structure, Lattice):
            raise TypeError(f"structure must be a Sequence, Grid or Lattice, got {checks.describe(structure)}")
        self.features = checks.integer("features", features, least=1)
        widths = hidden if isinstance(hidden, tuple) else (hidden,)
        if not widths:
            raise ValueError("hidden must be a width or a tuple of widths, got an empty tuple")
        self.hidden = tuple(checks.integer("hidden", width, least=1) for width in widths)
        self.structure = structure
        self.pair = nn.Linear(2 * features, self.hidden[0])  # of [a; b]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(self.hidden))
        self.out = nn.Linear(self.hidden[-1], len(structure.relations), bias=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Xavier weights and zero biases, as in the paper."""
        for layer in (self.pair, *self.layers, self.out):
            nn.init.xavier_uniform_(layer.weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)

    def forward(self, x: Float[Tensor, "*batch n features"]) -> Float[Tensor, "*batch r n n"]:
        elements("x", x, self.features)
        of_first, of_second = self.pair.weight.split(self.features, 1)
        first, second = linear(x, of_first, self.pair.bias), linear(x, of_second)  # (*batch, N, hidden)
        weights = [tensor for layer in self.layers for tensor in (layer.weight, layer.bias)]
        f = pairs(first, second, [*weights, self.out.weight])  # (*batch, R, N, N)
        orders = sum(isinstance(relation, Order) for relation in self.structure.relations)
        order = f[..., :orders, :, :]
        order = order - order.mT
        return order if orders == f.shape[-3] else torch.cat([order, f[..., orders:, :, :]], -3)

    def extra_repr(self) -> str:
        return f"features={self.features}, hidden={self.hidden}, structure={self.structure!r}"


def elements(name: str, x: object, features: int) -> None:
    """A set of elements with that many features."""
    layout = f"(*batch, N, {features})"
    if checks.tensor(name, x, dims=2, layout=layout).shape[-1] != features:
        raise ValueError(f"{name} must be {layout}, got {checks.describe(x)}")


def pairs(
    first: Float[Tensor, "*batch n hidden"], second: Float[Tensor, "*batch n hidden"], weights: list[Tensor]
) -> Float[Tensor, "*batch r n n"]:
    """f of all pairs, from the two halves of its first layer: f[i, j] = out(… relu(first_i + second_j) …).

    `weights` are weight and bias of each further hidden layer, then the output's weight.
    """
    batch, (size, hidden) = first.shape[:-2], first.shape[-2:]
    outputs = weights[-1].shape[0]
    first, second = first.reshape(-1, size, hidden), second.reshape(-1, size, hidden)
    if torch.compiler.is_compiling():
        # The compiler fuses this into loops that never store a hidden value, forward or backward
        f = _head(first[:, :, None] + second[:, None], weights)
    else:
        with full_precision(first):  # autocast has already chosen the dtype of the first layer; the rest follows it
            f = _Pairs.apply(first, second, *(weight.to(first.dtype) for weight in weights))
    return f.reshape(*batch, size, size, outputs).movedim(-1, -3)


def _head(pre: Tensor, weights: list[Tensor]) -> Tensor:
    """What follows the first layer, (…, hidden) -> (…, outputs)."""
    hidden = pre.relu()
    *layers, out = weights
    for weight, bias in zip(layers[::2], layers[1::2], strict=True):
        hidden = linear(hidden, weight, bias).relu()
    if torch.compiler.is_compiling() and not layers:
        return torch.stack([(hidden * row).sum(-1) for row in out], -1)  # a sum fuses with the ReLU, a product does not
    return linear(hidden, out)


def _chunks(batch: int, size: int, width: int) -> Iterator[tuple[slice, slice]]:
    """Cut (batch, rows) into blocks of about CHUNK hidden values: several sets, or several rows of one."""
    sets = max(1, CHUNK // max(1, size * size * width))
    rows = size if sets > 1 else max(1, CHUNK // (size * width))
    for b in range(0, batch, sets):
        for i in range(0, size, rows):
            yield slice(b, b + sets), slice(i, i + rows)


class _Pairs(torch.autograd.Function):
    """The head over all pairs, chunk by chunk; backward computes each chunk again instead of keeping it."""

    @staticmethod
    def forward(ctx: Any, first: Tensor, second: Tensor, *weights: Tensor) -> Tensor:
        ctx.save_for_backward(first, second, *weights)
        (batch, size, hidden), width = first.shape, max(w.shape[0] for w in (first.mT[0], *weights))
        f = first.new_empty(batch, size, size, weights[-1].shape[0])
        for sets, rows in _chunks(batch, size, width):
            f[sets, rows] = _head(first[sets, rows, None] + second[sets, None], list(weights))
        return f

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, ...]:
        first, second, *weights = ctx.saved_tensors
        (batch, size, _), width = first.shape, max(w.shape[0] for w in (first.mT[0], *weights))
        totals = [torch.zeros_like(tensor) for tensor in (first, second, *weights)]
        leaves = [weight.detach().requires_grad_() for weight in weights]
        for sets, rows in _chunks(batch, size, width):
            with torch.enable_grad():
                pre = (first[sets, rows, None] + second[sets, None]).requires_grad_()
                f = _head(pre, leaves)
            of_pre, *of_weights = torch.autograd.grad(f, [pre, *leaves], grad[sets, rows])
            totals[0][sets, rows] += of_pre.sum(2)
            totals[1][sets] += of_pre.sum(1)
            for total, part in zip(totals[2:], of_weights, strict=True):
                total += part
        return tuple(totals)
