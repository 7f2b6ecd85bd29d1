"""LinearStart and Arrange: the parameters, and the layer that people put into their models."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from unshuffle import checks
from unshuffle.assignment import Arrangement, apply
from unshuffle.costs import elements
from unshuffle.descent import Descent
from unshuffle.sinkhorn import full_precision
from unshuffle.structures import Lattice

if TYPE_CHECKING:
    from jaxtyping import Bool, Float


class LinearStart(nn.Module):
    """P̃⁰[i, k] = w_k · x_i, clipped to [−10, 10]: each element votes for its position (PO-LA and LinAssign).

    Args:
        features: of an element.
        positions: the most that a set can have; smaller sets use the first ones.

    >>> import torch, unshuffle as us
    >>> us.LinearStart(3, 4)(torch.rand(8, 4, 3)).shape
    torch.Size([8, 4, 4])
    """

    CLIP = 10.0  # the paper's: unclipped scores gave NaN in the classification experiment

    def __init__(self, features: int, positions: int) -> None:
        super().__init__()
        self.features = checks.integer("features", features, least=1)
        self.positions = checks.integer("positions", positions, least=1)
        self.weight = nn.Parameter(torch.empty(positions, features))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.xavier_uniform_(self.weight)

    def forward(self, x: Float[Tensor, "*batch n features"]) -> Float[Tensor, "*batch n n"]:
        elements("x", x, self.features)
        size = x.shape[-2]
        if size > self.positions:
            raise ValueError(f"x has {size} elements, and this start knows {self.positions} positions at the most")
        return linear(x, self.weight[:size]).clamp(-self.CLIP, self.CLIP)

    def extra_repr(self) -> str:
        return f"features={self.features}, positions={self.positions}"


class Arrange(nn.Module):
    """Arrange the elements of a set on a structure by minimising learned pairwise costs (the paper's appendix A).

    Args:
        structure: `Sequence()`, `Grid(rows, cols)` or `Lattice(*shape)`.
        cost: a module x -> costs, (*batch, R, N, N); usually `PairwiseCost`.
        start: a module x -> scores, (*batch, N, N); usually `LinearStart`. None starts uniform.
        steps: T of the descent.
        iterations, temperature: of the Sinkhorn operator.

    The paper's models are configurations: PO-U has no start, PO-LA has a `LinearStart`, and LinAssign is that with
    `steps=0`. The step sizes η are learned: one for the order relations, one for the neighbour relations.

    >>> import torch, unshuffle as us
    >>> structure = us.Sequence()
    >>> layer = us.Arrange(structure, us.PairwiseCost(3, 16, structure), steps=6)
    >>> layer(torch.rand(8, 10, 3))
    Arrangement((8, 10, 3) on Sequence(), steps=6)
    """

    def __init__(
        self,
        structure: Lattice,
        cost: nn.Module,
        start: nn.Module | None = None,
        steps: int = 4,
        *,
        iterations: int = 4,
        temperature: float = 1.0,
    ) -> None:
        super().__init__()
        if not isinstance(structure, Lattice):
            raise TypeError(f"structure must be a Sequence, Grid or Lattice, got {checks.describe(structure)}")
        for name, module in (("cost", cost), ("start", start)):
            if not isinstance(module, nn.Module) and not (name == "start" and module is None):
                raise TypeError(f"{name} must be a module, got {checks.describe(module)}")
        self.structure = structure
        self.cost = cost
        self.start = start
        self.steps = checks.integer("steps", steps, least=0)
        self.iterations = checks.integer("iterations", iterations, least=1)
        self.temperature = checks.positive("temperature", temperature)
        self.step_size = nn.Parameter(torch.ones(1 + structure.neighbours))

    def forward(
        self, x: Float[Tensor, "*batch n features"], mask: Bool[Tensor, "*batch n"] | None = None
    ) -> Arrangement:
        checks.tensor("x", x, dims=2, layout="(*batch, N, features)")
        checks.mask(mask, x.shape[:-2], x.shape[-2])
        self.structure.check_mask(mask)
        self.structure.lengths(x.shape[-2])
        if mask is not None:
            x = x.masked_fill(~mask.unsqueeze(-1), 0.0)  # what stands in the padding must not reach a gradient
        start = None if self.start is None else self.start(x)
        kinds = len(self.step_size)
        descent = Descent.of(
            self.cost(x),
            self.structure,
            start,
            self.steps,
            self.step_size.repeat_interleave(len(self.structure.relations) // kinds),
            self.iterations,
            self.temperature,
            mask,
        )
        soft = descent.soft()
        with full_precision(soft):
            return Arrangement(apply(soft, x), soft, x, descent)

    def extra_repr(self) -> str:
        return f"{self.structure!r}, steps={self.steps}, iterations={self.iterations}, temperature={self.temperature:g}"
