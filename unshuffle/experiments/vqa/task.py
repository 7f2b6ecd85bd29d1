"""Visual question answering (the paper's section 4.4): questions about sets of object proposals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from unshuffle import checks
from unshuffle.experiments.problem import Problem
from unshuffle.experiments.seeds import generator
from unshuffle.experiments.vqa.answers import accuracy, soft_scores
from unshuffle.experiments.vqa.ban import Ban
from unshuffle.experiments.vqa.dataset import UNKNOWN, Split, load
from unshuffle.experiments.vqa.features import Proposals
from unshuffle.experiments.vqa.questions import TYPES
from unshuffle.experiments.vqa.sequence import ObjectSequence, arrangement
from unshuffle.experiments.vqa.words import put_glove

if TYPE_CHECKING:
    from jaxtyping import Float, Int

WATCHED = 2000  # held-out questions that an epoch's quick metrics look at
CHUNK = 500  # held-out questions at a time


@dataclass(frozen=True)
class Vqa:
    """The paper's settings (its appendix E.4), which are BAN's but for the batch."""

    data: str = "scenes"  # a folder; see `dataset`
    model: str = "ban-po-u"
    features: int | None = 2048  # of a proposal; None takes what there is
    hidden: int = 1280
    glimpses: int = 8
    rank: int = 3
    word_width: int = 300
    glove: str | None = None  # a file of word vectors to start from
    length: int = 14  # words of a question
    least: int = 9  # questions that a candidate answer must have
    projected: int = 8
    pair_hidden: int = 128
    set_hidden: int = 128
    steps: int = 3
    temperature: float = 1.0  # of the Sinkhorn operator
    dropout: tuple[float, float] = (0.2, 0.5)
    lr: float = 1e-3
    batch_size: int = 112
    epochs: int = 13
    clip: float | None = 0.25
    seed: int = 0
    limit: int | None = None  # questions of each split, at the most

    def __post_init__(self) -> None:
        if self.model not in MODELS:
            raise Problem(f"unknown model {self.model!r}; there are {', '.join(MODELS)}")
        for name in ("hidden", "glimpses", "rank", "word_width", "length", "least", "projected", "pair_hidden"):
            checks.integer(name, getattr(self, name), least=1)
        for name in ("set_hidden", "batch_size", "epochs"):
            checks.integer(name, getattr(self, name), least=1)
        checks.integer("steps", self.steps, least=0)
        checks.positive("lr", self.lr)
        checks.positive("temperature", self.temperature)
        if self.limit is not None:
            checks.integer("limit", self.limit, least=1)

    @property
    def cell(self) -> str:
        """Which cell of the table a run fills, as the name of its files."""
        return f"vqa-{Path(self.data).name}-{self.model}-seed{self.seed}"


# What each row of the table makes of the set; nothing for BAN itself
MODELS: dict[str, Callable[[Vqa, int], ObjectSequence | None]] = {
    "ban": lambda config, features: None,
    "ban-lstm": lambda config, features: ObjectSequence(features, config.projected, config.set_hidden),
    "ban-po-u": lambda config, features: _arranged(config, features, neighbours=False),
    "ban-neighbours": lambda config, features: _arranged(config, features, neighbours=True),
}


def _arranged(config: Vqa, features: int, *, neighbours: bool) -> ObjectSequence:
    arrange = arrangement(
        config.projected, config.pair_hidden, config.steps, neighbours=neighbours, temperature=config.temperature
    )
    return ObjectSequence(features, config.projected, config.set_hidden, arrange)


PRESETS: dict[str, dict[str, Any]] = {
    "paper": {},
    # Two minutes for 20,000 questions on one core. So short a training barely moves η from 1, at which the assignment
    # of dozens of objects is a blur: a lower temperature makes it sharper from the start.
    "small": {
        "features": None, "hidden": 128, "glimpses": 2, "rank": 1, "word_width": 64, "pair_hidden": 32,
        "set_hidden": 64, "temperature": 0.3, "dropout": (0.0, 0.0), "batch_size": 128, "lr": 4e-3, "epochs": 10,
    },
}  # fmt: skip


def settings(**chosen: Any) -> Vqa:
    """The small preset, or the one that is chosen by name; what else is chosen comes before it."""
    preset = chosen.pop("preset", "small")
    if preset not in PRESETS:
        raise Problem(f"unknown preset {preset!r}; there are {', '.join(PRESETS)}")
    if "dropout" in chosen:
        chosen["dropout"] = tuple(chosen["dropout"])
    return Vqa(**PRESETS[preset] | chosen)


def ban(config: Vqa, features: int, words: int, answers: int) -> Ban:
    """The model of a row of the table."""
    return Ban(
        features,
        words,
        answers,
        hidden=config.hidden,
        word_width=config.word_width,
        glimpses=config.glimpses,
        rank=config.rank,
        sequence=MODELS[config.model](config, features),
        dropout=config.dropout,
    )


class Batch(NamedTuple):
    """Questions with the sets that they are about, and what each candidate answer is worth."""

    objects: Proposals
    tokens: Int[Tensor, "batch words"]
    targets: Float[Tensor, "batch answers"]


POOL = 16  # batches


def alike(sizes: Int[Tensor, " items"], batch: int, random: torch.Generator) -> Int[Tensor, " items"]:
    """A random order in which the sets of a batch are of similar sizes, so that there is little padding.

    Pools of several batches are drawn at random, and each is sorted; then the batches are shuffled. What makes no
    whole batch comes last.
    """
    whole = len(sizes) // batch
    drawn, left = torch.randperm(len(sizes), generator=random).split([whole * batch, len(sizes) - whole * batch])
    pools = [pool[sizes[pool].argsort(stable=True)] for pool in drawn.split(POOL * batch)]
    batches = torch.cat(pools).unflatten(0, (whole, batch))
    return torch.cat([batches[torch.randperm(whole, generator=random)].flatten(), left])


class VqaTask:
    """See `training.Task`."""

    name = "vqa"

    def __init__(self, config: Vqa, device: torch.device, root: Path | None = None) -> None:
        self.config, self.device = config, device
        self.train, self.val, self.lexicon = load(
            Path(config.data), width=config.features, length=config.length, least=config.least
        )
        self.items = len(self.train.images[: config.limit])
        self.shuffled: tuple[int, Tensor] = (-1, torch.empty(0))

    def build(self) -> Ban:
        words, answers = self.lexicon.words, self.lexicon.answers
        model = ban(self.config, self.train.source.features, len(words) + UNKNOWN + 1, len(answers))
        if self.config.glove is not None:
            put_glove(model.question.embedding, Path(self.config.glove), words)
        return model

    def optimiser(self, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
        """BAN's."""
        return torch.optim.Adamax(parameters, lr=self.config.lr, foreach=True)

    def batch(self, epoch: int, first: int, size: int, part: slice) -> Batch:
        if self.shuffled[0] != epoch:
            random = generator(self.config.seed, epoch)
            self.shuffled = epoch, alike(self.train.sizes()[: self.items], size, random)
        return self.questions(self.train, self.shuffled[1][first : first + size][part])

    def questions(self, split: Split, chosen: Int[Tensor, " batch"]) -> Batch:
        tokens = split.tokens[chosen]
        return Batch(
            Proposals(*(part.to(self.device) for part in split.source.take(split.images[chosen]))),
            tokens[:, : int((tokens != 0).sum(1).max())].to(self.device),
            soft_scores(split.answers[chosen], len(self.lexicon.answers)).to(self.device),
        )

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Binary cross-entropy, summed over the candidates."""
        logits = model(*batch.objects, batch.tokens)
        return binary_cross_entropy_with_logits(logits.float(), batch.targets) * batch.targets.shape[1]

    def learning_rate(self, progress: float) -> float:
        """BAN's: up to twice the rate in the first 4 of 13 epochs, and a quarter of it in the last 3, of that the last.

        Shorter and longer runs take the same shares of their epochs.
        """
        epoch = int(13 * progress + 1e-6)
        return self.config.lr * min(0.5 * (epoch + 1), 2.0) * 0.25 ** max(0, (epoch - 8) // 2)

    def watch(self, model: Ban) -> dict[str, Any]:
        by_type = self.measure(model, min(WATCHED, len(self.val.images)))
        return {name: by_type[name] for name in ("overall", *TYPES) if name in by_type}

    def evaluate(self, model: Ban) -> dict[str, Any]:
        """The official accuracy on all held-out questions: overall, by answer type, and by the kind of question."""
        return self.measure(model, len(self.val.images))

    def measure(self, model: Ban, count: int) -> dict[str, Any]:
        count = min(count, self.config.limit or count)
        scores = []
        for chosen in torch.arange(count).split(CHUNK):
            batch = self.questions(self.val, chosen)
            predicted = model(*batch.objects, batch.tokens).argmax(-1).cpu()
            scores.append(accuracy(predicted, self.val.judged[chosen]))
        score = torch.cat(scores).double()
        metrics: dict[str, Any] = {"questions": count, "overall": score.mean().item()}
        for number, name in enumerate(TYPES):
            of_type = self.val.types[:count] == number
            if of_type.any():
                metrics[name] = score[of_type].mean().item()
        kinds = self.val.kinds[:count]
        metrics["kinds"] = {
            kind: score[torch.tensor([other == kind for other in kinds])].mean().item() for kind in sorted(set(kinds))
        }
        return metrics
