"""What the core does not need, but some of its functions do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def needed_for(what: str) -> Iterator[None]:
    """Imports of optional packages; a missing one is named together with the extra that installs it."""
    try:
        yield
    except ImportError as error:
        missing = error.name or error
        raise ImportError(f"{what} need {missing}; pip install 'unshuffle[experiments]'", name=error.name) from error
