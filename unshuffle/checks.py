"""What every public function asks of its arguments, once, before any arithmetic.

A message names the argument, says what was received and what was expected. `ValueError` for shapes and values,
`TypeError` for types. Shapes and types only: nothing here looks at the numbers, so that nothing waits for a GPU.
"""

from __future__ import annotations

import numbers

import numpy as np
import torch
from torch import Tensor

FLOATING = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def describe(value: object) -> str:
    """How an error message names what was received."""
    if isinstance(value, Tensor):
        return f"a {str(value.dtype).removeprefix('torch.')} tensor of shape {tuple(value.shape)}"
    return f"{value!r} ({type(value).__name__})"


def tensor(name: str, value: object, *, dims: int, layout: str) -> Tensor:
    """A floating-point tensor with at least `dims` dimensions, described to the user as `layout`."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a tensor {layout}, got {describe(value)}")
    if value.dtype not in FLOATING:
        raise TypeError(f"{name} must be float16, bfloat16, float32 or float64, got {describe(value)}")
    if value.dim() < dims:
        raise ValueError(f"{name} must be {layout}, got {describe(value)}")
    return value


def mask(value: object, batch: torch.Size | tuple[int, ...], elements: int) -> None:
    """None, or a boolean tensor (*batch, N) whose batch dimensions broadcast with the set's."""
    if value is None:
        return
    if not isinstance(value, Tensor):
        raise TypeError(f"mask must be a boolean tensor (*batch, N), got {describe(value)}")
    if value.dtype != torch.bool:
        raise TypeError(f"mask must be boolean, True for a real element, got {describe(value)}")
    if value.dim() < 1 or value.shape[-1] != elements or not broadcasts(value.shape[:-1], batch):
        raise ValueError(f"mask must be (*batch, N) = {(*batch, elements)}, got {describe(value)}")


def broadcasts(shape: torch.Size | tuple[int, ...], batch: torch.Size | tuple[int, ...]) -> bool:
    """Whether two batch shapes go together under broadcasting."""
    pairs = zip(reversed(shape), reversed(batch), strict=False)
    return all(a == b or a == 1 or b == 1 for a, b in pairs)


def integer(name: str, value: object, *, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (numbers.Integral, torch.SymInt)):
        raise TypeError(f"{name} must be a whole number, got {describe(value)}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")
    return int(value)


def positive(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        raise TypeError(f"{name} must be a number above 0, got {describe(value)}")
    if not value > 0:
        raise ValueError(f"{name} must be above 0, got {value}")
    return float(value)
