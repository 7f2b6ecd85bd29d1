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
ORDINALS = ("first", "second", "third")


@dataclass(frozen=True)
class Thing:
    """An object; a scene is a list of them, from left to right."""

    shape: str
    colour: str
    size: str

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


def how_many_beside(scene: Scene) -> Asked:
    """Left or right of the only object that looks so."""
    for look in SHAPES + COLOURS:
        places = looking(scene, look)
        if len(places) == 1:
            yield f"how many objects are left of the {named(look)}?", str(places[0])
            yield f"how many objects are right of the {named(look)}?", str(len(scene) - 1 - places[0])


def is_there_beside(scene: Scene) -> Asked:
    for look in COLOURS:
        for other in SHAPES:
            these, those = looking(scene, look), looking(scene, other)
            if these and those:
                left, right = these[0] < those[-1], these[-1] > those[0]
                yield f"is there a {named(look)} left of a {other}?", "yes" if left else "no"
                yield f"is there a {named(look)} right of a {other}?", "yes" if right else "no"


def is_the(scene: Scene) -> Asked:
    for place, thing in ordinals(scene):
        for look in SHAPES + COLOURS:
            yield f"is the {place} object from the left a {named(look)}?", "yes" if look in thing.looks() else "no"


def are_there_more(scene: Scene) -> Asked:
    for looks in (SHAPES, COLOURS):
        for look in looks:
            for other in looks:
                if look != other:
                    more = len(looking(scene, look)) > len(looking(scene, other))
                    yield f"are there more {named(look, True)} than {named(other, True)}?", "yes" if more else "no"


def what_colour(scene: Scene) -> Asked:
    """Of the second object, of the second ball, … from the left."""
    for place, thing in ordinals(scene):
        yield f"what colour is the {place} object from the left?", thing.colour
    for shape in SHAPES:
        for place, thing in ordinals([scene[k] for k in looking(scene, shape)]):
            yield f"what colour is the {place} {shape} from the left?", thing.colour


def what_shape(scene: Scene) -> Asked:
    for place, thing in ordinals(scene):
        yield f"what shape is the {place} object from the left?", thing.shape


def which_between(scene: Scene) -> Asked:
    """Between two objects that are the only ones to look so, with one object in their middle."""
    only = [(places[0], look) for look in SHAPES + COLOURS if len(places := looking(scene, look)) == 1]
    for (k, left), (other, right) in product(only, only):
        if other == k + 2:
            yield f"which shape is between the {named(left)} and the {named(right)}?", scene[k + 1].shape
            yield f"which colour is between the {named(left)} and the {named(right)}?", scene[k + 1].colour


def ordinals(scene: Scene) -> Iterator[tuple[str, Thing]]:
    yield from zip(ORDINALS, scene, strict=False)
    if scene:
        yield "last", scene[-1]


DIGITS = tuple(str(number) for number in range(10))
KINDS = (
    Kind("how many", "number", how_many, DIGITS),
    Kind("how many different", "number", how_many_different, DIGITS),
    Kind("how many objects are", "number", how_many_beside, DIGITS),
    Kind("is there a", "yes/no", is_there_beside, ("yes", "no")),
    Kind("is the", "yes/no", is_the, ("yes", "no")),
    Kind("are there more", "yes/no", are_there_more, ("yes", "no")),
    Kind("what colour is the", "other", what_colour, COLOURS),
    Kind("what shape is the", "other", what_shape, SHAPES),
    Kind("which", "other", which_between, SHAPES + COLOURS),
)
