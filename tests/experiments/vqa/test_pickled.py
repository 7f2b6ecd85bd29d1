import collections
import pickle

import numpy as np
import pytest

from unshuffle.experiments.problem import Problem
from unshuffle.experiments.vqa.pickled import read_index


class Bomb:
    def __reduce__(self):
        import os

        return os.system, ("exit 1",)


class Persistent(pickle.Pickler):
    def persistent_id(self, obj):
        return "outside" if obj == 5 else None


def persistent(path):
    with path.open("wb") as file:
        Persistent(file).dump({1: 5})


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_an_index(tmp_path, protocol):
    (tmp_path / "x.pkl").write_bytes(pickle.dumps({581929: 0, 2**40: 1}, protocol))
    assert read_index(tmp_path / "x.pkl") == {581929: 0, 2**40: 1}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (Bomb(), "asks for (posix|nt|os).system"),
        ({1: Bomb()}, "asks for"),
        (collections.OrderedDict({1: 2}), "asks for collections.OrderedDict"),
        ({1: np.int64(2)}, "asks for numpy"),
        (Bomb, "asks for tests.experiments.vqa.test_pickled.Bomb"),
        ({1, 2}, "asks for|not an index"),
        ([1, 2], "not an index of images"),
        ({"1": 2}, "not an index of images"),
        ({1: True}, "not an index of images"),
        ({}, "not an index of images"),
    ],
)
@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_nothing_but_plain_containers(tmp_path, monkeypatch, content, message, protocol):
    path = tmp_path / "x.pkl"
    path.write_bytes(pickle.dumps(content, protocol))
    monkeypatch.setattr("os.system", lambda *_: pytest.fail("it ran"))
    with pytest.raises(Problem, match=rf"x.pkl is .*({message})"):
        read_index(path)


def test_broken_pickles(tmp_path):
    path = tmp_path / "x.pkl"
    persistent(path)
    with pytest.raises(Problem, match="refers to something outside"):
        read_index(path)
    for content in (b"", b"no pickle", pickle.dumps({1: 2})[:-2]):
        path.write_bytes(content)
        with pytest.raises(Problem, match=r"x.pkl is not a pickle of plain containers"):
            read_index(path)
    with pytest.raises(Problem, match="cannot be read: No such file"):
        read_index(tmp_path / "y.pkl")
