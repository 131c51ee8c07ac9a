"""A browser for tests of the web console: the Chromium of the system, if there is one."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from support.forks import ForkedProcess, script_of
from support.processes import command

#: Milliseconds that anything on a page may take before a test fails.
WAIT_LIMIT = 60_000.0


def chromium() -> str | None:
    """The path of a Chromium; None if there is none."""
    names = [os.environ.get("CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome"]
    return next((found for name in names if name and (found := shutil.which(name))), None)


@contextlib.contextmanager
def web_program(url: str, log: Path, *options: str) -> Iterator[str]:
    """A `qmf-web` on the broker at `url`, as a process of its own; gives the address of its pages.

    What it writes to its standard error is in `log`.
    """
    script = script_of([command("qmf-web"), "-b", url, "--port", "0", *options])
    assert script is not None
    read, written = os.pipe()
    errors = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    program = ForkedProcess(*script, os.environ, (os.open(os.devnull, os.O_RDONLY), written, errors))
    with os.fdopen(read, encoding="utf-8") as printed:
        try:
            line = printed.readline()
            found = re.search(r"http://\S+", line)
            assert found is not None, f"{line}{log.read_text(encoding='utf-8')}"
            yield found[0].rstrip("/")
        finally:
            program.terminate()
            program.wait()
