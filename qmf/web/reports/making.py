"""What is asked for in reports, and what makes them: a process of `qmf-pipeline`, which leaves the server alone."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Mapping, Sequence
from typing import Self

import attrs

from qmf.web.problems import Problem

#: Characters of a value at most.
_LENGTH = 200


@attrs.frozen(kw_only=True)
class ReportQuestion:
    """A report as its address says it; empty texts are left to the command.

    Attributes:
        first, last, length: times and a length, as `qmf-pipeline report` reads them; two at most.
        compare: another time, see there.
        classes: names of classes, separated by commas.
        own: include what agents and consoles created for themselves.
    """

    first: str = ""
    last: str = ""
    length: str = ""
    compare: str = ""
    classes: str = ""
    own: bool = False

    @classmethod
    def parse(cls, query: Mapping[str, str]) -> Self:
        """From the query of an address; what is too long is cut, and then refused by the command."""
        texts = {name: query.get(name, "").strip()[:_LENGTH] for name in ("from", "to", "for", "compare", "class")}
        return cls(
            first=texts["from"],
            last=texts["to"],
            length=texts["for"],
            compare=texts["compare"],
            classes=texts["class"],
            own=query.get("own", "") not in ("", "0", "false"),
        )

    @property
    def arguments(self) -> list[str]:
        """The options of the command; one word each, so that no value can be another option."""
        values = {
            "--from": self.first,
            "--to": self.last,
            "--for": self.length,
            "--compare": self.compare,
            "--class": self.classes,
        }
        return [*(f"{name}={value}" for name, value in values.items() if value), *(["--own"] if self.own else [])]


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
