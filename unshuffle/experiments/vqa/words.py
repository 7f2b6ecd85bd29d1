"""A question as states of a GRU, one for each word; word vectors from a GloVe file, if there is one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from unshuffle.experiments.problem import Problem
from unshuffle.experiments.vqa.dataset import PADDING

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


class Reader(nn.Module):
    """Words by number to the states of a GRU, (B, words, hidden); zero on padding.

    Args:
        count: numbers of words, padding and the unknown word included.
        width: of a word's vector.
        hidden: of the state.
    """

    def __init__(self, count: int, width: int, hidden: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(count, width, padding_idx=PADDING)
        self.gru = nn.GRU(width, hidden, batch_first=True)

    def forward(
        self, tokens: Int[Tensor, "batch words"]
    ) -> tuple[Float[Tensor, "batch words hidden"], Bool[Tensor, "batch words"]]:
        real = tokens != PADDING
        states, _ = self.gru(self.embedding(tokens))  # padding comes last: no real word sees it
        return states.masked_fill(~real.unsqueeze(-1), 0.0), real


def put_glove(embedding: nn.Embedding, path: Path, words: dict[str, int]) -> int:
    """The vectors of a GloVe file for the words that it has; how many these are."""
    found = 0
    try:
        with path.open(encoding="utf-8") as file, torch.no_grad():
            for number, line in enumerate(file, 1):
                word, *values = line.rstrip().split(" ")
                if word in words:
                    vector = _vector(path, number, values, embedding.embedding_dim)
                    embedding.weight[words[word]] = vector
                    found += 1
    except (OSError, UnicodeDecodeError) as error:
        raise Problem(f"{path} cannot be read as a GloVe file: {error}") from error
    if not found:
        raise Problem(f"{path} has none of the {len(words)} words of the questions: is it a GloVe file?")
    return found


def _vector(path: Path, number: int, values: list[str], width: int) -> Tensor:
    try:
        vector = torch.tensor([float(value) for value in values])
    except ValueError as error:
        raise Problem(f"{path}, line {number}: {error}") from error
    if len(vector) != width:
        raise Problem(f"{path}, line {number}: {len(vector)} numbers, but a word's vector has {width} here")
    return vector
