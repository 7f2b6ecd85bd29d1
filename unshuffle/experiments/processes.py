"""`accelerate launch --cpu --num_processes N` starts one process, whatever N says, where there is no MPI.

That is known (huggingface/accelerate#2741): the launcher sets the address at which the processes are to meet, and then
starts the first of them only. Finding ourselves alone there, we put torch's own launcher in our place, which starts all
of them; `accelerate` does the rest as usual.
"""

from __future__ import annotations

import os
import sys
from itertools import pairwise

LAUNCHED = ("WORLD_SIZE", "LOCAL_RANK", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE")


def start_missing() -> None:
    """Become the launcher of all processes that were asked for, if only one was started. Nothing may be open yet."""
    count = asked_for()
    if count > 1:
        launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(count)]
        os.execv(sys.executable, [sys.executable, *launcher, "-m", "unshuffle", *sys.argv[1:]])


def asked_for() -> int:
    """How many processes `accelerate launch` was asked for and did not start; 1 if nothing is missing."""
    alone = "MASTER_ADDR" in os.environ and not any(name in os.environ for name in LAUNCHED)
    if not alone or os.environ.get("ACCELERATE_USE_CPU", "").lower() != "true":
        return 1
    import psutil

    parent = psutil.Process().parent()
    return number_in(parent.cmdline() if parent else [])


def number_in(command: list[str]) -> int:
    """N of `--num_processes N`, in any of the forms that accelerate takes."""
    for word, following in pairwise([*command, ""]):
        name, _, value = word.partition("=")
        if name.replace("_", "-") == "--num-processes" and (value or following).isdigit():
            return int(value or following)
    return 1
