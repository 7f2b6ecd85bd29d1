import base64

import h5py
import numpy as np
import pytest

from tests.experiments.vqa.conftest import WIDTH, proposals, write_features
from unshuffle.experiments.problem import Problem
from unshuffle.experiments.vqa.tsv import convert


def encoded(values):
    return base64.b64encode(np.ascontiguousarray(values, "<f4").tobytes()).decode()


def write_tsv(path, images=(11, 12, 13, 14), seed=0):
    ids, counts, values, boxes, sizes = proposals(list(images), np.random.default_rng(seed))
    ends = np.cumsum(counts)
    rows = zip(ids, sizes, counts, ends - counts, ends, strict=True)
    path.write_text(
        "".join(
            f"{image}\t{w}\t{h}\t{count}\t{encoded(boxes[a:b])}\t{encoded(values[a:b])}\n"
            for image, (w, h), count, a, b in rows
        )
    )


def contents(path):
    with h5py.File(path) as file:
        return {name: file[name][:].tolist() for name in file}


def test_the_same_as_written_directly(tmp_path):
    write_tsv(tmp_path / "a.tsv")
    assert convert([tmp_path / "a.tsv"], tmp_path / "tsv.hdf5") == 4
    write_features(tmp_path / "direct.hdf5")
    assert contents(tmp_path / "tsv.hdf5") == contents(tmp_path / "direct.hdf5")
    indices = [(tmp_path / f"{name}_imgid2idx.json").read_text() for name in ("tsv", "direct")]
    assert indices[0] == indices[1]


def test_the_wanted_images_of_several_files(tmp_path):
    write_tsv(tmp_path / "a.tsv")
    write_tsv(tmp_path / "b.tsv", (14, 21, 22), seed=1)
    assert convert([tmp_path / "a.tsv", tmp_path / "b.tsv"], tmp_path / "x.hdf5", {12, 14, 22}) == 3
    found = contents(tmp_path / "x.hdf5")
    assert found["pos_boxes"] == [[0, 2], [2, 6], [6, 9]]  # image 14 is the one of the first file
    assert np.shape(found["image_features"]) == (9, WIDTH)


GOOD = f"7\t100\t200\t2\t{encoded(np.ones((2, 4)))}\t{encoded(np.ones((2, WIDTH)))}"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (GOOD.replace("\t2\t", "\t3\t"), "line 2: image 7 says 3 boxes, but holds 8 coordinates and 10 features"),
        (GOOD.replace("\t2\t", "\t0\t"), "line 2: image 7 has 0 boxes"),
        (GOOD.replace("\t2\t", "\ttwo\t"), "line 2: invalid literal"),
        (GOOD[:-1], "line 2: .*padding"),
        (GOOD[:-9] + "?" + GOOD[-8:], "line 2: "),
        (GOOD.rpartition("\t")[0], "line 2: 5 fields, expected image_id"),
    ],
)
def test_a_broken_line_leaves_no_file(tmp_path, line, message):
    (tmp_path / "a.tsv").write_text(f"{GOOD}\n{line}\n")
    with pytest.raises(Problem, match=rf"a.tsv, {message}"):
        convert([tmp_path / "a.tsv"], tmp_path / "x.hdf5")
    assert [path.name for path in tmp_path.iterdir()] == ["a.tsv"]


def test_images_that_are_nowhere(tmp_path):
    write_tsv(tmp_path / "a.tsv")
    with pytest.raises(Problem, match="2 of 3 images are in no TSV file, such as 98"):
        convert([tmp_path / "a.tsv"], tmp_path / "x.hdf5", {11, 98, 99})
    with pytest.raises(Problem, match="none of the images that are wanted"):
        convert([tmp_path / "a.tsv"], tmp_path / "x.hdf5", {98})
    with pytest.raises(Problem, match=r"b.tsv cannot be read: No such file"):
        convert([tmp_path / "b.tsv"], tmp_path / "x.hdf5")
