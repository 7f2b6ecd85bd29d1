import os
import socket

# Before gradio is imported: no test asks the network
os.environ["HF_HUB_OFFLINE"] = "1"

import pytest

from tests.experiments.test_tables import mosaic_record
from unshuffle.web.picture import samples
from unshuffle.web.serve import served


@pytest.fixture(scope="session")
def photograph():
    """Grace Hopper, who comes with matplotlib: no model has seen her."""
    return samples()[-1]


@pytest.fixture(scope="session")
def records(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    mosaic_record("po-la", side=3).write(folder / "mosaic-a.json")
    return folder


@pytest.fixture(scope="session")
def address(records):
    """The page, as `unshuffle serve` serves it; for its pictures, with the records of this checkout."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with served("127.0.0.1", port, None if "UNSHUFFLE_SCREENSHOTS" in os.environ else records) as url:
        yield url
