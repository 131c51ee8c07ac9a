"""Makes reports: each by a process of `qmf-pipeline`, which can be ended, and leaves the server's loop alone."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Sequence

from qmf.web.problems import Problem
from qmf.web.reports.asking import ReportQuestion

#: The command of this installation.
COMMAND = (sys.executable, "-c", "import sys; from qmf._entry import pipeline; sys.exit(pipeline())", "report")

_MISTAKE = 2
_PROG = "qmf-pipeline: "


class ReportMaker:
    """Makes reports about one lake, one at a time."""

    def __init__(self, lake: str, seconds: float, *, command: Sequence[str] = COMMAND) -> None:
        """Make a maker of reports.

        Args:
            lake: folder or URL.
            seconds: after which a report is given up, the time that it waits for others included.
            command: the program that makes it.
        """
        self.lake = lake
        self._seconds = seconds
        self._command = command
        self._turn = asyncio.Lock()

    async def make(self, question: ReportQuestion) -> bytes:
        """The page.

        Raises:
            Problem: 422, the command refuses what is asked, with its line; 500, it failed; 503, it took too long.
        """
        try:
            async with asyncio.timeout(self._seconds), self._turn:
                return await self._run(question)
        except TimeoutError:
            raise Problem(
                503, f"the report was not ready after {self._seconds:g} s: ask for a shorter time, or for some classes"
            ) from None

    async def _run(self, question: ReportQuestion) -> bytes:
        process = await asyncio.create_subprocess_exec(
            *self._command,
            f"--lake={self.lake}",
            "--output=-",
            *question.arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            page, errors = await process.communicate()
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                # Reads to the end as well, so that its pipes are closed.
                await process.communicate()
        if process.returncode:
            lines = errors.decode("utf-8", "replace").strip().splitlines()
            said = lines[-1] if lines else f"exit code {process.returncode}"
            if process.returncode == _MISTAKE and said.startswith(_PROG):
                raise Problem(422, said.removeprefix(_PROG))
            raise Problem(500, f"the report failed: {said}")
        return page
