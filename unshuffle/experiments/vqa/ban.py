"""Bilinear Attention Networks (Kim et al. 2018) with a counting module, and the set read in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor, nn

from unshuffle.experiments.vqa.bilinear import BilinearAttention, BilinearPooling, joint_softmax, linear
from unshuffle.experiments.vqa.counting import Counter
from unshuffle.experiments.vqa.sequence import ObjectSequence
from unshuffle.experiments.vqa.words import Reader
from unshuffle.sinkhorn import at_least_float32

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


class Ban(nn.Module):
    """Scores of all candidate answers from a set of objects and a question.

    Attention of all glimpses is found at once. Each glimpse then pools objects and question under its attention, and
    adds to every state of the question what it pooled, what it counted and what the sequence of objects says.

    Args:
        features: of an object.
        words: numbers of words; `word_width` of their vectors.
        answers: candidates.
        hidden: of the question and of everything that is added to it.
        glimpses: γ.
        rank: k of the attention.
        count: the most that the counting module counts to.
        sequence: reads the objects as a sequence, shared by all glimpses; None for BAN itself.
        dropout: on the inputs of linear maps, and within attention and classifier.
    """

    def __init__(
        self,
        features: int,
        words: int,
        answers: int,
        *,
        hidden: int = 1280,
        word_width: int = 300,
        glimpses: int = 8,
        rank: int = 3,
        count: int = 10,
        sequence: ObjectSequence | None = None,
        dropout: tuple[float, float] = (0.2, 0.5),
    ) -> None:
        super().__init__()
        inputs, inner = dropout
        self.question = Reader(words, word_width, hidden)
        self.attention = BilinearAttention(features, hidden, hidden, glimpses, rank, dropout)
        self.pooling = nn.ModuleList(BilinearPooling(features, hidden, hidden, inputs) for _ in range(glimpses))
        self.pooled = nn.ModuleList(linear(hidden, hidden, dropout=inputs, relu=False) for _ in range(glimpses))
        self.counter = Counter(count)
        self.counted = nn.ModuleList(linear(count + 1, hidden) for _ in range(glimpses))
        self.sequence = sequence
        if sequence is not None:
            self.arranged = nn.ModuleList(linear(sequence.rnn.hidden_size, hidden) for _ in range(glimpses))
        self.classifier = nn.Sequential(
            linear(hidden, 2 * hidden), nn.Dropout(inner), linear(2 * hidden, answers, relu=False)
        )

    def forward(
        self,
        features: Float[Tensor, "batch n features"],
        boxes: Float[Tensor, "batch n 4"],
        mask: Bool[Tensor, "batch n"],
        tokens: Int[Tensor, "batch words"],
    ) -> Float[Tensor, "batch answers"]:
        question, real = self.question(tokens)
        pairs = (mask.unsqueeze(-1) & real.unsqueeze(-2)).unsqueeze(1)  # (B, 1, N, words)
        logits = at_least_float32(self.attention(features, question))
        attention = joint_softmax(logits, pairs)
        strongest = logits.masked_fill(~real[:, None, None], -float("inf")).amax(-1)  # (B, G, N): over the words
        everywhere = mask.unsqueeze(1).expand_as(strongest)
        counts = self.counter(strongest, boxes.unsqueeze(1).expand(*strongest.shape, -1), everywhere)
        sequence = None if self.sequence is None else self.sequence(features, boxes, strongest, mask)
        for g, pooling in enumerate(self.pooling):
            added = self.pooled[g](pooling(features, question, attention[:, g])) + self.counted[g](counts[:, g])
            if sequence is not None:
                added = added + self.arranged[g](sequence[:, g])
            question = (question + added.unsqueeze(1)).masked_fill(~real.unsqueeze(-1), 0.0)
        return self.classifier(question.sum(1))
