from unshuffle.commands import serve


def test_help(command):
    code, out, _ = command("serve --help")
    assert code == 0
    for words in ("--host", "--port", "127.0.0.1"):
        assert words in out


def test_there_is_no_way_to_share(command):
    code, _, err = command("serve --share")
    assert code == 2
    assert "No such option: --share" in err


def test_a_port_that_cannot_be(command, address):
    code, _, err = command("serve --port 70000")
    assert (code, err.count("\n")) == (2, 1)
    taken = address.rstrip("/").rsplit(":", 1)[1]
    code, _, err = command(f"serve --port {taken}")
    assert (code, err.count("\n")) == (2, 1)
    assert f"cannot serve at 127.0.0.1:{taken}" in err


def test_without_gradio(command, monkeypatch):
    monkeypatch.setattr(serve, "find_spec", lambda _: None)
    code, _, err = command("serve")
    assert (code, err) == (2, "unshuffle: the page needs gradio; pip install 'unshuffle[web]'\n")


def test_it_says_where_and_ends_quietly(command, monkeypatch):
    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(serve.threading.Event, "wait", interrupted)
    monkeypatch.setattr("unshuffle.web.serve.served", Served)
    code, out, err = command("serve --port 8123")
    assert (code, err) == (0, "")
    assert "http://127.0.0.1:8123" in out


class Served:
    def __init__(self, host, port, results):
        self.address = f"http://{host}:{port}"

    def __enter__(self):
        return self.address

    def __exit__(self, *_):
        pass
