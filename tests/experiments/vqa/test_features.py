import json

import h5py
import numpy as np
import pytest
import torch

from tests.experiments.vqa.conftest import WIDTH, write_features
from unshuffle.experiments.problem import Problem
from unshuffle.experiments.vqa import features
from unshuffle.experiments.vqa.features import InMemory, OnDisk, check, index_of


@pytest.fixture
def path(tmp_path):
    write_features(tmp_path / "train.hdf5")
    return tmp_path / "train.hdf5"


def test_bans_layout(path):
    images, _, values, boxes, _ = write_features(path)
    with h5py.File(path) as file:
        assert {name: file[name].shape for name in file} == {
            "image_features": (10, WIDTH), "image_bb": (10, 4), "spatial_features": (10, 6), "pos_boxes": (4, 2),
        }  # fmt: skip
        assert np.array_equal(file["image_features"], values)
        assert np.array_equal(file["image_bb"], boxes)
        assert file["pos_boxes"][:].tolist() == [[0, 1], [1, 3], [3, 6], [6, 10]]
        x1, y1, x2, y2 = boxes.T
        expected = np.stack([x1 / 100, y1 / 200, x2 / 100, y2 / 200, (x2 - x1) / 100, (y2 - y1) / 200], 1)
        np.testing.assert_allclose(file["spatial_features"], expected, rtol=1e-4, atol=1e-6)
    assert json.loads(index_of(path).read_text()) == {str(image): row for row, image in enumerate(images)}
    assert index_of(path).name == "train_imgid2idx.json"


@pytest.mark.parametrize("source", [InMemory, OnDisk])
def test_sets_of_a_batch(path, source):
    _, _, values, boxes, _ = write_features(path)
    layout = check(path, index_of(path))
    found = source(layout).take(torch.tensor([layout.rows[13], layout.rows[11]]))
    assert found.mask.tolist() == [[True] * 3, [True, False, False]]
    assert torch.equal(found.features[0], torch.from_numpy(values[3:6]))
    assert torch.equal(found.features[1, 0], torch.from_numpy(values[0]))
    assert not found.features[1, 1:].any()
    assert not found.boxes[1, 1:].any()
    shares = torch.from_numpy(boxes[3:6] / [100, 200, 100, 200]).float()
    torch.testing.assert_close(found.boxes[0], shares, rtol=1e-5, atol=1e-6)


def test_large_files_stay_on_the_disk(path, monkeypatch):
    assert isinstance(check(path, index_of(path)).open(), InMemory)
    monkeypatch.setattr(features, "IN_MEMORY", 10)
    monkeypatch.setattr(InMemory, "__init__", lambda *_: pytest.fail("read as a whole"))
    assert isinstance(check(path, index_of(path)).open(), OnDisk)


def change(path, name, value):
    with h5py.File(path, "r+") as file:
        if name in file:
            del file[name]
        if value is not None:
            file[name] = value


BAD = {
    "image_bb": [
        (None, r"train.hdf5 has no dataset image_bb"),
        (np.zeros((10, 5)), r"train.hdf5: image_bb is \(10, 5\), expected \(10, 4\)"),
        (np.zeros((9, 4)), r"train.hdf5: image_bb is \(9, 4\), expected \(10, 4\)"),
        (np.zeros(10), r"train.hdf5: image_bb has the shape \(10,\), expected two dimensions"),
    ],
    "pos_boxes": [
        ([[0, 1], [1, 3], [3, 6]], r"imgid2idx.json: image 14 is at row 3; .*train.hdf5 has 3 images"),
        ([[0, 1], [1, 1], [1, 6], [6, 10]], r"image 12 \(row 1 of pos_boxes\) has no proposals: an empty set"),
        ([[0, 1], [1, 3], [3, 6], [6, 11]], r"pos_boxes gives image 14 the proposals 6 to 11; there are 10"),
        ([[0, 1], [1, 4], [3, 6], [6, 10]], r"pos_boxes gives images 12 and 13 the same proposals, from 3"),
        ([[0, 1], [1, 3], [3, 5], [6, 10]], r"has 10 proposals, but pos_boxes gives the images .* 9 together"),
        ([[0, 1, 2]] * 4, r"pos_boxes is \(4, 3\), expected \(images, 2\)"),
    ],
}


@pytest.mark.parametrize(("name", "value", "message"), [(name, *bad) for name, bads in BAD.items() for bad in bads])
def test_broken_files(path, name, value, message):
    change(path, name, value)
    with pytest.raises(Problem, match=message):
        check(path, index_of(path))


def test_a_file_of_other_dimensions(path):
    with pytest.raises(Problem, match=r"train.hdf5: image_features is \(10, 5\), expected \(10, 2048\)"):
        check(path, index_of(path), 2048)


def test_a_file_cut_short(path):
    path.write_bytes(path.read_bytes()[:-700])
    with pytest.raises(Problem, match=r"train.hdf5 cannot be read as HDF5 \(missing, cut short, or something else\)"):
        check(path, index_of(path))


def test_a_value_that_is_no_number(path):
    values = np.zeros((10, WIDTH), "float32")
    values[6, 2] = np.nan
    change(path, "image_features", values)
    with pytest.raises(Problem, match=r"train.hdf5: row 6 of image_features holds a value that is not a number"):
        check(path, index_of(path)).open()


@pytest.mark.parametrize("content", ["{}", "[1]", '{"x": 1}', '{"11": -1}', '{"11": 0.5}', '{"11": [0]}'])
def test_an_index_that_is_none(path, content):
    index_of(path).write_text(content)
    with pytest.raises(Problem, match=r"train_imgid2idx.json is not an index of images"):
        check(path, index_of(path))


def test_a_file_appears_whole_or_not_at_all(path):
    good = path.read_bytes()
    with pytest.raises(Problem, match="on the way"), features.writing(path, WIDTH):
        raise Problem("on the way")
    assert path.read_bytes() == good
    assert {file.name for file in path.parent.iterdir()} == {"train.hdf5", "train_imgid2idx.json"}
