"""Synthetic scenes in the formats of VQA v2: questions whose answers depend on more than a sum over objects.

A scene has 4 to 9 objects, each with a shape, a colour, a size and a number painted on it, in columns of their own, so
that left and right are never in doubt. A detector that nobody trained sees each object one to five times, in boxes that
are shifted and scaled a little, with features that are the sum of a vector for each of these, and noise: 10 to 40
proposals of a scene, in random order.

Questions are of the three official types, and of the kinds of `kinds`; each kind's answers are kept in balance.
Ten people answer each question, and each is wrong one time in ten: by one in a number, by guessing otherwise.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from unshuffle import checks
from unshuffle.experiments.seeds import number
from unshuffle.experiments.vqa import features
from unshuffle.experiments.vqa.kinds import COLOURS, KINDS, NUMBERS, SHAPES, SIZES, Kind, Scene, Thing
from unshuffle.experiments.vqa.questions import Question, most_common, write_split

WIDTH, HEIGHT, COLUMNS = 640, 480, 10
SCALE = np.array([34.0, 56.0])  # pixels of a small and of a large object
LOOKS = (SHAPES, COLOURS, SIZES, NUMBERS)
PEOPLE, MISTAKEN = 10, 0.1
QUESTIONS_OF_A_SCENE = 5


@dataclass(frozen=True)
class Scenes:
    """How much to make, and how hard to see."""

    questions: int = 20_000
    held_out: int = 5_000
    features: int = 32
    noise: float = 0.4  # standard deviation in each feature, whose own is 1 or so
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("questions", "held_out", "features"):
            checks.integer(name, getattr(self, name), least=1)
        if not self.noise >= 0:
            raise ValueError(f"noise must be a number of at least 0, got {self.noise:g}")


@dataclass(frozen=True)
class Drawn:
    """Objects of many scenes, from left to right; where a scene has fewer than the most, `there` is False."""

    there: np.ndarray  # (scenes, most), bool
    shape: np.ndarray  # (scenes, most), of SHAPES
    colour: np.ndarray  # (scenes, most), of COLOURS
    size: np.ndarray  # (scenes, most), of SIZES
    number: np.ndarray  # (scenes, most), of NUMBERS
    centre: np.ndarray  # (scenes, most, 2), pixels


def write(folder: Path, config: Scenes) -> None:
    """Both splits, with scenes of their own."""
    codes = codebook(config)
    for split, count, first in (("train", config.questions, 1), ("val", config.held_out, 10**6 + 1)):
        random = np.random.default_rng(number("scenes", config.seed, split))
        drawn = draw(-(-count // QUESTIONS_OF_A_SCENE), random)
        images = first + np.arange(len(drawn.there))
        with features.writing(folder / f"{split}.hdf5", config.features) as writer:
            counts, values, boxes = detect(drawn, codes, config.noise, random)
            writer.add(images, counts, values, boxes, np.tile([WIDTH, HEIGHT], (len(images), 1)))
        write_split(folder, split, ask(drawn, images, count, random))


def codebook(config: Scenes) -> list[np.ndarray]:
    """A vector for each shape, colour, size and number."""
    random = np.random.default_rng(number("scenes", config.seed, "codes"))
    return [random.standard_normal((len(names), config.features)) for names in LOOKS]


def draw(scenes: int, random: np.random.Generator, most: int = 9, least: int = 4) -> Drawn:
    """Objects in columns that are chosen at random, sorted from left to right."""
    there = np.arange(most) < random.integers(least, most + 1, scenes)[:, None]
    columns = random.random((scenes, COLUMNS)).argsort(1)[:, :most]
    columns = np.sort(np.where(there, columns, COLUMNS), 1)
    x = (columns + 0.5 + random.uniform(-0.15, 0.15, columns.shape)) * WIDTH / COLUMNS
    y = random.uniform(0.15, 0.85, columns.shape) * HEIGHT
    shape, colour, size, painted = (random.integers(len(names), size=columns.shape) for names in LOOKS)
    return Drawn(there, shape, colour, size, painted, np.stack([x, y], -1))


def detect(
    drawn: Drawn, codes: list[np.ndarray], noise: float, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """How many proposals each scene has, and features and boxes of all of them: scene after scene, shuffled in each."""
    # One proposal of each object at least, five at the most, 10 to 40 of a scene
    least = random.integers(1, 6, (len(drawn.there), 1))
    times = np.where(drawn.there, random.integers(least, 6, drawn.there.shape), 0)
    while (short := times.sum(1) < 10).any():
        more = drawn.there[short] & (times[short] < 5) & (random.random(times[short].shape) < 0.5)
        times[short] += more
    while (long := times.sum(1) > 40).any():
        times[long] -= (times[long] > 1) & (random.random(times[long].shape) < 0.2)
    scene, thing = np.repeat(np.argwhere(drawn.there), times[drawn.there], 0).T
    order = np.lexsort((random.random(len(scene)), scene))
    scene, thing = scene[order], thing[order]
    looks = (drawn.shape, drawn.colour, drawn.size, drawn.number)
    code = np.sum([table[look[scene, thing]] for table, look in zip(codes, looks, strict=True)], axis=0)
    extent = SCALE[drawn.size[scene, thing]][:, None]
    centre = drawn.centre[scene, thing] + extent * random.normal(0, 0.06, (len(scene), 2))
    extent = extent * np.exp(random.normal(0, 0.08, (len(scene), 2)))
    boxes = np.concatenate([centre - extent / 2, centre + extent / 2], 1).clip(0, [WIDTH, HEIGHT] * 2)
    values = code + noise * random.standard_normal((len(scene), codes[0].shape[1]))
    return times.sum(1), values.astype(np.float32), boxes.astype(np.float32)


def ask(drawn: Drawn, images: np.ndarray, count: int, random: np.random.Generator) -> list[Question]:
    """So many questions, of kinds by chance; of all that fit a scene, one whose answer was given least so far."""
    given: dict[str, Counter[str]] = {kind.name: Counter() for kind in KINDS}
    result: list[Question] = []
    for row, image in enumerate(images.tolist()):
        scene, texts = scene_of(drawn, row), set[str]()
        while len(texts) < QUESTIONS_OF_A_SCENE:
            kind = KINDS[random.integers(len(KINDS))]
            asked = [pair for pair in kind.of(scene) if pair[0] not in texts]
            if not asked:
                continue
            so_far = given[kind.name]
            fewest = min(so_far[answer] for _, answer in asked)
            rare = [pair for pair in asked if so_far[pair[1]] == fewest]
            text, answer = rare[random.integers(len(rare))]
            texts.add(text)
            so_far[answer] += 1
            people = answered(answer, kind, random)
            name = QUESTIONS_OF_A_SCENE * image + len(texts)
            result.append(Question(name, image, text, kind.answer_type, kind.name, people, most_common(people)))
    return result[:count]


def scene_of(drawn: Drawn, row: int) -> Scene:
    looks = zip(drawn.shape[row], drawn.colour[row], drawn.size[row], drawn.number[row], strict=True)
    things = [Thing(*(names[k] for names, k in zip(LOOKS, look, strict=True))) for look in looks]
    return things[: drawn.there[row].sum()]


def answered(answer: str, kind: Kind, random: np.random.Generator) -> tuple[str, ...]:
    """What ten people say."""
    wrong = [other for other in kind.others if other != answer]
    if kind.answer_type == "number":
        wrong = [str(near) for near in (int(answer) - 1, int(answer) + 1) if near >= 0]
    mistaken = random.random(PEOPLE) < MISTAKEN
    return tuple(wrong[random.integers(len(wrong))] if slip else answer for slip in mistaken)
