"""A browser for tests of the web console: the Chromium of the system, if there is one."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

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
    command = [sys.executable, "-c", "import sys; from qmf._entry import web; sys.exit(web())"]
    with (
        log.open("w", encoding="utf-8") as errors,
        subprocess.Popen(
            [*command, "-b", url, "--port", "0", *options], stdout=subprocess.PIPE, stderr=errors, text=True
        ) as program,
    ):
        try:
            assert program.stdout is not None
            line = program.stdout.readline()
            found = re.search(r"http://\S+", line)
            assert found is not None, f"{line}{log.read_text(encoding='utf-8')}"
            yield found[0].rstrip("/")
        finally:
            program.terminate()
            program.wait()
