"""What can be wrong with a run that only its user can mend."""

from __future__ import annotations


class Problem(ValueError):  # noqa: N818, what the user has is a problem, not an error
    """A setting, a dataset or a file that does not do; the message is one line that says what to do about it."""
