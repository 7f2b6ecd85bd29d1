"""Start the page, keep it to itself, and leave nothing behind."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import TYPE_CHECKING
from unittest.mock import patch

from unshuffle.experiments.problem import Problem

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

# The browser itself refuses whatever is not from here: no script, font, picture or request goes elsewhere
POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; worker-src 'self' blob:; object-src 'none'; base-uri 'self'; "
    "form-action 'self'; frame-ancestors 'self'"
)


@contextmanager
def served(host: str, port: int | None, records: Path | None = None) -> Iterator[str]:
    """The page while it is up: its address. Uploads live in a folder of its own, which goes with it."""
    with TemporaryDirectory(prefix="unshuffle-page-") as folder, patch.dict(os.environ, _surroundings(folder)):
        from starlette.middleware import Middleware

        from unshuffle.web.page import look, page
        from unshuffle.web.picture import warm
        from unshuffle.web.uploads import BYTES

        blocks = page(records)
        try:
            _, address, _ = blocks.launch(
                server_name=host,
                server_port=port,
                share=False,
                quiet=True,
                prevent_thread_lock=True,
                footer_links=[],
                max_file_size=BYTES,
                allowed_paths=[],
                state_session_capacity=64,
                ssr_mode=False,
                mcp_server=False,
                pwa=False,
                enable_monitoring=False,
                app_kwargs={"middleware": [Middleware(Guard)]},
                **look(),
            )
        except OSError as error:
            raise Problem(f"cannot serve at {host}:{port}: {error}; choose another with --port") from error
        Thread(target=warm, daemon=True).start()
        try:
            yield address
        finally:
            blocks.close(verbose=False)


def _surroundings(folder: str) -> dict[str, str]:
    """What Gradio reads from the environment: no word to the outside, and this folder for what visitors send."""
    local = "localhost,127.0.0.1,::1"
    return {
        "GRADIO_ANALYTICS_ENABLED": "False",
        "GRADIO_TEMP_DIR": folder,
        "GRADIO_SHARE": "False",
        "HF_HUB_OFFLINE": "1",
        "NO_PROXY": f"{os.environ['NO_PROXY']},{local}" if os.environ.get("NO_PROXY") else local,
    }


class Guard:
    """ASGI middleware: the policy above with every answer."""

    HEADERS = ((b"content-security-policy", POLICY.encode()), (b"x-content-type-options", b"nosniff"))

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *self.HEADERS]
            await send(message)

        await self.app(scope, receive, guarded if scope["type"] == "http" else send)
