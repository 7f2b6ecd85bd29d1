"""Random numbers that depend on nothing but the numbers that name them, so that a run can start anywhere."""

from __future__ import annotations

import hashlib

import torch


def number(*names: object) -> int:
    """A number of 63 bits that the names decide."""
    return int.from_bytes(hashlib.sha256(repr(names).encode()).digest()[:8], "little") >> 1


def generator(*names: object) -> torch.Generator:
    """The generator of, say, a seed, an epoch and a step. On the CPU, so that every device sees the same batches."""
    return torch.Generator().manual_seed(number(*names))
