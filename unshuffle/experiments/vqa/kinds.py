"""The kinds of questions about synthetic scenes: everything of a kind that can be asked about one scene.

Only the numbers that count all objects, or those of one shape or colour, are sums; and those too must see that several
proposals are one object. The others compare positions, or objects with each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

SHAPES = ("ball", "box", "cone", "star")
COLOURS = ("red", "green", "blue", "yellow")
SIZES = ("small", "large")
NUMBERS = ("1", "2", "3", "4", "5")  # painted on the objects


@dataclass(frozen=True)
class Thing:
    """An object; a scene is a list of them, from left to right."""

    shape: str
    colour: str
    size: str
    number: str

    def looks(self) -> tuple[str, str]:
        return self.colour, self.shape


Scene = list[Thing]
Asked = Iterator[tuple[str, str]]  # texts with their answers


@dataclass(frozen=True)
class Kind:
    """A way to ask. `others` are answers that somebody who guesses might give."""

    name: str
    answer_type: str
    of: Callable[[Scene], Asked]
    others: tuple[str, ...]


def looking(scene: Scene, look: str) -> list[int]:
    """Which objects are of that colour or shape, from left to right."""
    return [k for k, thing in enumerate(scene) if look in thing.looks()]


def named(look: str, plural: bool = False) -> str:
    """red: red object; ball: ball."""
    return (f"{look} object" if look in COLOURS else look) + ("s" * plural if look != "box" else "es" * plural)


def how_many(scene: Scene) -> Asked:
    for look in SHAPES + COLOURS:
        yield f"how many {named(look, True)} are there?", str(len(looking(scene, look)))


def how_many_different(scene: Scene) -> Asked:
    """Colours of the objects, or of all that have a shape; and shapes likewise."""
    for what, these, looks in (("colours", 0, SHAPES), ("shapes", 1, COLOURS)):
        for look in looks:
            found = {scene[k].looks()[these] for k in looking(scene, look)}
            yield f"how many different {what} do the {named(look, True)} have?", str(len(found))


def what_number(scene: Scene) -> Asked:
    """That is painted on the first ball, the last red object, …"""
    for place, thing, look in placed(scene):
        yield f"what number is on the {place} {named(look)} from the left?", thing.number


def is_there_beside(scene: Scene) -> Asked:
    for look in COLOURS:
        for other in SHAPES:
            these, those = looking(scene, look), looking(scene, other)
            if these and those:
                left, right = these[0] < those[-1], these[-1] > those[0]
                yield f"is there a {named(look)} left of a {other}?", "yes" if left else "no"
                yield f"is there a {named(look)} right of a {other}?", "yes" if right else "no"


def is_the(scene: Scene) -> Asked:
    for place, thing, look in placed(scene):
        for other in COLOURS if look in SHAPES else SHAPES:
            text = other if look in SHAPES else f"a {other}"
            yield f"is the {place} {named(look)} from the left {text}?", "yes" if other in thing.looks() else "no"


def are_there_more(scene: Scene) -> Asked:
    for looks in (SHAPES, COLOURS):
        for look in looks:
            for other in looks:
                if look != other:
                    more = len(looking(scene, look)) > len(looking(scene, other))
                    yield f"are there more {named(look, True)} than {named(other, True)}?", "yes" if more else "no"


def what_colour(scene: Scene) -> Asked:
    for place, thing, look in placed(scene):
        if look in SHAPES:
            yield f"what colour is the {place} {look} from the left?", thing.colour


def what_shape(scene: Scene) -> Asked:
    for place, thing, look in placed(scene):
        if look in COLOURS:
            yield f"what shape is the {place} {named(look)} from the left?", thing.shape


def which_between(scene: Scene) -> Asked:
    """Between two objects that are the only ones to look so, with one object in their middle."""
    only = [(places[0], look) for look in SHAPES + COLOURS if len(places := looking(scene, look)) == 1]
    for (k, left), (other, right) in product(only, only):
        if other == k + 2:
            yield f"which shape is between the {named(left)} and the {named(right)}?", scene[k + 1].shape
            yield f"which colour is between the {named(left)} and the {named(right)}?", scene[k + 1].colour


def placed(scene: Scene) -> Iterator[tuple[str, Thing, str]]:
    """The first, the second and the last object from the left, of all that look alike, if there are several."""
    for look in SHAPES + COLOURS:
        alike = looking(scene, look)
        if len(alike) > 1:
            for place, k in (("first", alike[0]), ("second", alike[1]), ("last", alike[-1])):
                yield place, scene[k], look


DIGITS = tuple(str(number) for number in range(10))
KINDS = (
    Kind("how many", "number", how_many, DIGITS),
    Kind("how many different", "number", how_many_different, DIGITS),
    Kind("what number is", "number", what_number, NUMBERS),
    Kind("is there a", "yes/no", is_there_beside, ("yes", "no")),
    Kind("is the", "yes/no", is_the, ("yes", "no")),
    Kind("are there more", "yes/no", are_there_more, ("yes", "no")),
    Kind("what colour is the", "other", what_colour, COLOURS),
    Kind("what shape is the", "other", what_shape, SHAPES),
    Kind("which", "other", which_between, SHAPES + COLOURS),
)
