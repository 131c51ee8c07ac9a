"""Kill -9 of programs that start other programs, as Spark does."""

from __future__ import annotations

from contextlib import suppress

import psutil
from support.processes import Process


def kill_family(process: Process) -> None:
    """Kill a program and all its children at once."""
    main = psutil.Process(process.popen.pid)
    family = [main, *main.children(recursive=True)]
    for each in family:
        with suppress(psutil.NoSuchProcess):
            each.kill()
    psutil.wait_procs(family[1:], 30)
