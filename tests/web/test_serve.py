"""What the server lets in and out, without a browser."""

import json
import os
import uuid
from pathlib import Path
from tempfile import gettempdir

import httpx
import pytest

from tests.web.test_uploads import SVG
from unshuffle.experiments.problem import Problem
from unshuffle.web.serve import served
from unshuffle.web.uploads import BYTES


@pytest.fixture(scope="module")
def client(address):
    with httpx.Client(base_url=address, trust_env=False, timeout=30) as client:
        yield client


def test_it_listens_here_only_and_says_what_may_be_loaded(address, client):
    assert address.startswith("http://127.0.0.1:")
    answer = client.get("/")
    assert answer.status_code == 200
    assert "default-src 'self'" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "fonts.googleapis.com" not in answer.text
    assert "cdn" not in client.get("/theme.css").text


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "../../../../etc/passwd", "..%2f..%2f..%2fetc%2fpasswd", "pyproject.toml", "unshuffle/cli.py",
     str(Path(__file__))],
)  # fmt: skip
def test_no_file_but_uploads_is_served(client, path):
    for route in ("gradio_api/file=", "file=", "gradio_api/file/", "static/", "assets/"):
        answer = client.get(f"/{route}{path}")
        assert answer.status_code in (403, 404), route
        assert "root:" not in answer.text


def upload(client, name, content, kind="image/png"):
    return client.post("/gradio_api/upload", files={"files": (name, content, kind)})


def test_an_upload_stays_in_the_folder_and_is_never_run(client):
    folder = Path(os.environ["GRADIO_TEMP_DIR"]).resolve()
    assert folder.parent == Path(gettempdir()).resolve()
    for name in ("a.svg", "a.png", "a.html", "../../a.html", "/tmp/a.png"):
        [path] = upload(client, name, SVG, "image/svg+xml").json()
        assert Path(path).resolve().is_relative_to(folder)
        answer = client.get(f"/gradio_api/file={path}")
        shown_as_picture = answer.headers["content-type"] == "image/png"  # with nosniff: never as a page
        assert shown_as_picture or "attachment" in answer.headers["content-disposition"]
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_an_upload_is_bounded(client):
    assert upload(client, "large.png", bytes(BYTES + 1)).status_code == 413


def call(client, name, data):
    """What the page does when a button is pressed: the last message of the event."""
    config = client.get("/config").json()
    [index] = [d["id"] for d in config["dependencies"] if d["api_name"] == name]
    session = uuid.uuid4().hex[:10]
    joined = client.post("/gradio_api/queue/join", json={"fn_index": index, "data": data, "session_hash": session})
    if joined.status_code != 200:
        return {"success": False, "output": {}}
    with client.stream("GET", "/gradio_api/queue/data", params={"session_hash": session}) as stream:
        for line in stream.iter_lines():
            if line.startswith("data:") and (said := json.loads(line[5:]))["msg"] == "process_completed":
                return said
    return None


def test_a_path_of_the_server_is_not_read_as_an_upload(client):
    for path in ("/etc/passwd", str(Path(__file__))):
        file = {"path": path, "orig_name": "x.png", "meta": {"_type": "gradio.FileData"}}
        said = call(client, "receive", [file, None, 3, 1, False])
        assert not said["success"]
        assert "root:" not in json.dumps(said)


def test_an_upload_is_read(client, photograph):
    [path] = upload(client, "photograph.jpg", photograph.read_bytes(), "image/jpeg").json()
    said = call(client, "receive", [{"path": path, "meta": {"_type": "gradio.FileData"}}, None, 3, 1, False])
    assert said["success"]


def test_nothing_is_left_behind(records):
    outside = os.environ.get("GRADIO_TEMP_DIR")
    with served("127.0.0.1", None, records) as url:
        folder = Path(os.environ["GRADIO_TEMP_DIR"])
        with httpx.Client(base_url=url, trust_env=False) as client:
            [path] = upload(client, "a.png", SVG).json()
        assert Path(path).is_relative_to(folder)
        assert Path(path).exists()
    assert not folder.exists()
    assert os.environ.get("GRADIO_TEMP_DIR") == outside
    with pytest.raises(httpx.ConnectError):
        httpx.get(url, trust_env=False)


def test_a_port_that_is_taken(address):
    port = int(address.rstrip("/").rsplit(":", 1)[1])
    with pytest.raises(Problem, match="choose another with --port"), served("127.0.0.1", port):
        pass
