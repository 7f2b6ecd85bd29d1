"""PairwiseCost: how badly element i stands in each relation to element j (the paper's section 2.3).

An order cost is antisymmetric by construction, F(a, b) = f(a, b) − f(b, a); a neighbour cost is f itself. f is a
multilayer perceptron on the concatenation [a; b]. Its first layer is linear there, so it splits into one map of a
and one of b, W [a; b] = A a + B b, computed once an element; only what follows the first ReLU is paid for every pair.
f(b, a) needs no second evaluation either: over all pairs it is the transpose of f(a, b).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import linear

from unshuffle import checks
from unshuffle.sinkhorn import full_precision
from unshuffle.structures import Lattice, Order, Relation, antisymmetric

if TYPE_CHECKING:
    from jaxtyping import Float

# Hidden values of pairs that are alive at once, forward and backward: 2 MiB in float32, so that they stay in the
# caches of two cores. Larger problems are cut into chunks, whose hidden values the backward pass computes again.
CHUNK = 2**19

threshold_backward = torch.ops.aten.threshold_backward  # the gradient of a ReLU, without a mask in between


class PairwiseCost(nn.Module):
    """Learned costs of all pairs of elements, one matrix for each relation of the structure.

    Args:
        features: of an element.
        hidden: width of the hidden layer, or a tuple of widths for a deeper network.
        structure: its relations decide how many outputs there are and which are antisymmetric.
        relations: those of the structure that this network compares; all of them by default.

    The last layer has no bias: it would cancel in an order cost, and a neighbour cost is centred by the descent.

    >>> import torch, unshuffle as us
    >>> us.PairwiseCost(3, 16, us.Grid(2, 2))(torch.rand(8, 4, 3)).shape
    torch.Size([8, 2, 4, 4])
    """

    def __init__(
        self,
        features: int,
        hidden: int | tuple[int, ...],
        structure: Lattice,
        relations: tuple[Relation, ...] | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(structure, Lattice):
            raise TypeError(f"structure must be a Sequence, Grid or Lattice, got {checks.describe(structure)}")
        self.features = checks.integer("features", features, least=1)
        widths = hidden if isinstance(hidden, tuple) else (hidden,)
        if not widths:
            raise ValueError("hidden must be a width or a tuple of widths, got an empty tuple")
        self.hidden = tuple(checks.integer("hidden", width, least=1) for width in widths)
        self.structure = structure
        self.relations = structure.relations if relations is None else relations
        if not self.relations or not set(self.relations) <= set(structure.relations):
            raise ValueError(f"relations must be some of {structure.relations}, got {relations!r}")
        self.pair = nn.Parameter(torch.empty(2 * self.hidden[0], features))  # [A; B] of W [a; b] = A a + B b
        self.bias = nn.Parameter(torch.empty(self.hidden[0]))
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(self.hidden))
        self.out = nn.Linear(self.hidden[-1], len(self.relations), bias=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Xavier weights and zero biases, as in the paper: of the first layer as it maps [a; b]."""
        bound = math.sqrt(6 / (2 * self.features + self.hidden[0]))
        nn.init.uniform_(self.pair, -bound, bound)
        nn.init.zeros_(self.bias)
        for layer in (*self.layers, self.out):
            nn.init.xavier_uniform_(layer.weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)

    def forward(self, x: Float[Tensor, "*batch n features"]) -> Float[Tensor, "*batch r n n"]:
        elements("x", x, self.features)
        first, second = linear(x, self.pair).chunk(2, -1)  # (*batch, N, hidden) each
        layers: list[Tensor] = [*self.layers.parameters()]  # weight and bias of each
        f = pairs(first + self.bias.to(first.dtype), second, layers, self.out.weight)  # (*batch, R, N, N)
        orders = sum(isinstance(relation, Order) for relation in self.relations)  # they come first
        if orders == 0:
            return f
        if orders == f.shape[-3]:
            return antisymmetric(f, 1.0)
        return torch.cat([antisymmetric(f[..., :orders, :, :], 1.0), f[..., orders:, :, :]], -3)

    def extra_repr(self) -> str:
        return f"features={self.features}, hidden={self.hidden}, structure={self.structure!r}"


def elements(name: str, x: object, features: int) -> None:
    """A set of elements with that many features."""
    layout = f"(*batch, N, {features})"
    if checks.tensor(name, x, dims=2, layout=layout).shape[-1] != features:
        raise ValueError(f"{name} must be {layout}, got {checks.describe(x)}")


def pairs(
    first: Float[Tensor, "*batch n hidden"],
    second: Float[Tensor, "*batch n hidden"],
    layers: list[Tensor],
    out: Float[Tensor, "r width"],
) -> Float[Tensor, "*batch r n n"]:
    """f of all pairs, f[i, j] = out · (… relu(first_i + second_j) …), from the two halves of its first layer.

    `layers` are weight and bias of each further hidden layer.
    """
    batch, (size, hidden) = first.shape[:-2], first.shape[-2:]
    sets = math.prod(batch)
    first, second = first.reshape(sets, size, hidden), second.reshape(sets, size, hidden)
    with full_precision(first):  # autocast has chosen the dtype of the first layer; the rest follows it
        weights = [weight.to(first.dtype) for weight in (*layers, out)]
        f = _deep(first, second, weights) if layers else _Shallow.apply(first, second, *weights)
    return f.movedim(-1, 1).reshape(*batch, len(out), size, size)


def _blocks(
    width: int, owns: tuple[Tensor, ...], others: tuple[Tensor, ...], rows: tuple[Tensor, ...]
) -> Iterator[tuple[Tensor, ...]]:
    """Walk through all pairs in blocks of about CHUNK hidden values: several sets, or several rows of one.

    All tensors are (B, N, …). Yields views that broadcast against each other, (r, 1, …) of each in `owns` and (1, N, …)
    of each in `others`, or of several sets (s, N, 1, …) and (s, 1, N, …); and of each in `rows` the same rows,
    (s · r, …). All is split beforehand, because Python would take as long for each block as the arithmetic does.
    """
    size = owns[0].shape[1]
    sets = max(1, CHUNK // (size * size * width))
    counts: int | list[int] = sets * size
    if sets > 1:
        split_owns = [tensor.unsqueeze(2).split(sets) for tensor in owns]
        split_others = [tensor.unsqueeze(1).split(sets) for tensor in others]
    else:
        step = max(1, CHUNK // (size * width))
        of_one = [step] * (size // step) + [size % step] * (size % step > 0)
        counts = of_one * len(owns[0])
        split_owns = [tensor.flatten(0, 1).unsqueeze(1).split(counts) for tensor in owns]
        repeated = [[one for one in tensor.split(1) for _ in of_one] for tensor in others]
        split_others = [tuple(blocks) for blocks in repeated]
    return zip(*split_owns, *split_others, *(tensor.flatten(0, 1).split(counts) for tensor in rows), strict=True)


class _Shallow(torch.autograd.Function):
    """One hidden layer, (B, N, N, R). With a = first, b = second, w = out and A_ij the active ReLUs, a_i > −b_j:

    relu(a + b) = max(a, −b) + b
    ∂a_i = w ∘ Σ_j ∂f_ij A_ij        ∂b_j = w ∘ Σ_i ∂f_ij A_ij        ∂w = Σ a ∘ ∂a/w + b ∘ ∂b/w

    so that forward is one maximum and one product over a block of pairs that stays in the cache, and backward one
    comparison and one product for each of a and b. The compiler makes a single loop of each, without any block.
    """

    @staticmethod
    def forward(ctx: Any, first: Tensor, second: Tensor, out: Tensor) -> Tensor:
        negative = -second
        ctx.save_for_backward(first, negative, out)
        (batch, size, width), relations = first.shape, out.shape[0]
        if torch.compiler.is_compiling():
            hidden = (first.unsqueeze(2) + second.unsqueeze(1)).relu()
            return torch.stack([(hidden * row).sum(-1) for row in out], -1)
        weight = out.mT.contiguous()
        f = first.new_empty(batch, size, size, relations)
        block = first.new_empty(0)
        for own, other, result in _blocks(width, (first,), (negative,), (f,)):
            torch.maximum(own, other, out=block.resize_(*own.shape[:-2], size, width))
            torch.mm(block.view(-1, width), weight, out=result.view(-1, relations))
        return f.add_((second @ weight).unsqueeze(1))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        first, negative, out = ctx.saved_tensors
        of_first = _through_active(torch.gt, first, negative, grad.mT)  # (B, N, R, hidden)
        of_second = _through_active(torch.lt, negative, first, grad.permute(0, 2, 3, 1))
        of_out = _inner(of_first, first) - _inner(of_second, negative)
        return _sum(of_first.mul_(out)), _sum(of_second.mul_(out)), of_out


def _through_active(
    compare: Callable[..., Tensor], own: Tensor, other: Tensor, grad: Tensor
) -> Float[Tensor, "b n r hidden"]:
    """Σ_j grad[i, :, j] · 1[own_i compares with other_j], from grad (B, N, R, N)."""
    (batch, size, width), relations = own.shape, grad.shape[2]
    if torch.compiler.is_compiling():
        on = compare(own.unsqueeze(2), other.unsqueeze(1))
        return torch.stack([torch.where(on, row.unsqueeze(-1), 0.0).sum(2) for row in grad.unbind(2)], 2)
    total = own.new_empty(batch, size, relations, width)
    active = own.new_empty(0)
    for mine, theirs, weights, result in _blocks(width, (own,), (other,), (grad.contiguous(), total)):
        compare(mine, theirs, out=active.resize_(*mine.shape[:-2], size, width))
        torch.bmm(weights, active.view(-1, size, width), out=result)
    return total


def _inner(values: Float[Tensor, "b n r hidden"], x: Float[Tensor, "b n hidden"]) -> Float[Tensor, "r hidden"]:
    """Σ values ∘ x over all elements, one relation at a time: fresh memory is what this would wait for."""
    return torch.stack([(of_relation * x).sum((0, 1)) for of_relation in values.unbind(2)])


def _sum(values: Float[Tensor, "b n r hidden"]) -> Float[Tensor, "b n hidden"]:
    return values.sum(2) if values.shape[2] > 1 else values.squeeze(2)  # torch copies even a single one


# A deeper network works block by block too, and backward computes each block again instead of keeping it. It is an
# operator of its own, which the compiler leaves alone: traced, it would keep every hidden value of the whole batch.
@torch.library.custom_op("unshuffle::deep_pairs", mutates_args=())
def _deep(first: Tensor, second: Tensor, weights: list[Tensor]) -> Tensor:
    *layers, out = weights
    f = first.new_empty(*first.shape[:2], first.shape[1], out.shape[0])
    for own, other, result in _blocks(_widest(first, layers), (first,), (second,), (f,)):
        last = _hidden(own + other, layers)[-1].flatten(0, -2)
        torch.mm(last, out.mT, out=result.view(-1, len(out)))
    return f


@torch.library.custom_op("unshuffle::deep_pairs_backward", mutates_args=())
def _deep_backward(grad: Tensor, first: Tensor, second: Tensor, weights: list[Tensor]) -> list[Tensor]:
    of_first, of_second, *of_layers, of_out = (torch.zeros_like(tensor) for tensor in (first, second, *weights))
    *layers, out = weights
    owns, others = (first, of_first), (second, of_second)
    for own, of_own, other, of_other, of_f in _blocks(_widest(first, layers), owns, others, (grad.contiguous(),)):
        pre = own + other
        *hidden, last = (values.flatten(0, -2) for values in _hidden(pre, layers))  # (pairs, width) of each layer
        of_pairs = of_f.view(-1, len(out))
        of_out.addmm_(of_pairs.mT, last)
        of_last = threshold_backward(of_pairs @ out, last, 0.0)
        for depth in range(len(hidden) - 1, -1, -1):
            of_layers[2 * depth].addmm_(of_last.mT, hidden[depth])
            of_layers[2 * depth + 1] += of_last.sum(0)
            of_last = threshold_backward(of_last @ layers[2 * depth], hidden[depth], 0.0)
        of_last = of_last.view(pre.shape)
        of_own.copy_(of_last.sum(-2, keepdim=True))
        of_other.add_(of_last.sum(-3, keepdim=True))
    return [of_first, of_second, *of_layers, of_out]


def _hidden(pre: Tensor, layers: list[Tensor]) -> list[Tensor]:
    """The output of every hidden layer, the first one's from its input before the ReLU."""
    hidden = [pre.relu_()]
    for weight, bias in zip(layers[::2], layers[1::2], strict=True):
        hidden.append(linear(hidden[-1], weight, bias).relu_())
    return hidden


@_deep.register_fake
def _(first: Tensor, second: Tensor, weights: list[Tensor]) -> Tensor:
    return first.new_empty(*first.shape[:2], first.shape[1], weights[-1].shape[0])


@_deep_backward.register_fake
def _(grad: Tensor, first: Tensor, second: Tensor, weights: list[Tensor]) -> list[Tensor]:
    return [torch.empty_like(tensor) for tensor in (first, second, *weights)]


def _save(ctx: Any, inputs: tuple[Tensor, Tensor, list[Tensor]], output: Tensor) -> None:
    first, second, weights = inputs
    ctx.save_for_backward(first, second, *weights)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, list[Tensor]]:
    first, second, *weights = ctx.saved_tensors
    of_first, of_second, *of_weights = _deep_backward(grad, first, second, weights)
    return of_first, of_second, of_weights


_deep.register_autograd(_backward, setup_context=_save)


def _widest(first: Tensor, layers: list[Tensor]) -> int:
    return max(first.shape[-1], *(len(bias) for bias in layers[1::2]))
