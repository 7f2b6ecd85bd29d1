import pytest
import torch
from PIL import Image

from benchmarks.images import smooth
from unshuffle import tiles
from unshuffle.experiments import data
from unshuffle.experiments.problem import Problem


def test_a_folder_in_the_hubs_layout(hub):
    train, test = data.load("cifar10", root=hub)
    assert torch.equal(train.pixels, smooth(40, 3, 32, seed=0))
    assert torch.equal(test.pixels, smooth(16, 3, 32, seed=1))
    assert train.labels.tolist() == [k % 10 for k in range(40)]
    grey, _ = data.load("mnist", root=hub)
    assert grey.pixels.shape == (96, 1, 28, 28)


def test_decoded_once(hub, monkeypatch):
    first, _ = data.load("mnist", root=hub)
    monkeypatch.setattr(data, "_decode", lambda *_: pytest.fail("decoded again"))
    again, _ = data.load("mnist", root=hub)
    assert torch.equal(first.pixels, again.pixels)


def test_a_damaged_cache_is_made_again(hub, tmp_path, monkeypatch):
    monkeypatch.setenv("UNSHUFFLE_CACHE", str(tmp_path))
    before, _ = data.load("mnist", root=hub)
    for file in tmp_path.iterdir():
        file.write_bytes(file.read_bytes()[:100])
    after, _ = data.load("mnist", root=hub)
    assert torch.equal(before.pixels, after.pixels)


def test_normalised_has_mean_0_and_deviation_1(hub):
    train, test = data.load("cifar10", root=hub)
    x = tiles.normalised(train.pixels, train.mean, train.std)
    torch.testing.assert_close(x.mean((0, 2, 3)), torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(x.std((0, 2, 3), unbiased=False), torch.ones(3), atol=1e-5, rtol=0)
    assert torch.equal(test.mean, train.mean)  # the test set is seen through the training set's eyes
    exact = (train.pixels.double() / 255 - train.mean[:, None, None]) / train.std[:, None, None]
    torch.testing.assert_close(x.double(), exact, atol=1e-5, rtol=1e-5)


def save_images(folder, names, size=(70, 90)):
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        pixels = torch.randint(256, (*size, 3), dtype=torch.uint8)
        Image.fromarray(pixels.numpy()).save(folder / name)


def test_any_folder_of_images(tmp_path):
    save_images(tmp_path / "cats", [f"{k}.png" for k in range(30)])
    save_images(tmp_path / "dogs", [f"{k}.jpg" for k in range(30)])
    train, test = data.load(str(tmp_path))
    assert len(train.pixels) + len(test.pixels) == 60
    assert 1 <= len(test.pixels) <= 15
    assert train.pixels.shape[1:] == (3, data.FOLDER_SIZE, data.FOLDER_SIZE)
    assert set(train.labels.tolist()) == {0, 1}

    def contents(images):
        return {bytes(image.flatten().tolist()) for image in images.pixels}

    save_images(tmp_path / "eels", ["new.png"])
    train_after, test_after = data.load(str(tmp_path))
    assert contents(train) <= contents(train_after)  # a new file leaves the others where they were
    assert contents(test) <= contents(test_after)
    assert not contents(train_after) & contents(test_after)


def test_a_small_folder_still_has_both_splits(tmp_path):
    save_images(tmp_path, [f"{k}.png" for k in range(data.HELD_OUT)])
    train, test = data.load(str(tmp_path))
    assert len(test.pixels) >= 1
    assert len(train.pixels) >= 1


def test_too_few_images(tmp_path):
    save_images(tmp_path, ["one.png"])
    with pytest.raises(Problem, match=r"holds 1 image.* at least 10"):
        data.load(str(tmp_path))


def test_an_image_that_is_none(tmp_path):
    save_images(tmp_path, [f"{k}.png" for k in range(12)])
    (tmp_path / "x.png").write_bytes(b"no image")
    with pytest.raises(Problem, match=r"cannot be read.*x\.png"):
        data.load(str(tmp_path))


def test_missing_dataset_says_what_to_pass(tmp_path):
    with pytest.raises(Problem, match="--data-root DIR, or set UNSHUFFLE_DATA, to a folder that holds ylecun/mnist"):
        data.load("mnist", root=tmp_path)
    with pytest.raises(Problem, match="unknown dataset 'mnits': pass one of mnist, cifar10, tiny-imagenet"):
        data.load("mnits")


def test_data_root(tmp_path, monkeypatch):
    assert data.data_root(None) is None
    monkeypatch.setenv("UNSHUFFLE_DATA", str(tmp_path))
    assert data.data_root(None) == tmp_path
    with pytest.raises(Problem, match="there is no folder"):
        data.data_root(tmp_path / "nowhere")
