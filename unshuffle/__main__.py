"""`python -m unshuffle`: the same as the command `unshuffle`, for `accelerate launch -m`."""

from unshuffle.cli import main

main()
