"""Runs a page: each block by its language and its marks, and collects what is not as the page says."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import io
import os
import re
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import CodeType

import pytest
from docs.compare import Expected
from docs.page import ROOT, Block, Command, PageError, blocks, commands, lines, refresh
from docs.stage import Stage
from support.waiting import WAIT_LIMIT

from qmf.console.aio.agent_tracker import AgentTracker

#: Seconds that calls of a page's code wait at most: enough for its reader, too few for a busy machine.
_WAIT = re.compile(r"(\btimeout=|\.wait\()(\d+)\b")


@contextlib.contextmanager
def stage(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """A stage in a folder, which is the current directory; modules that a page makes there are forgotten afterwards."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(AgentTracker, "settle", _patient_settle)
    monkeypatch.setattr(sys, "path", ["", *sys.path])  # as in a program that is started there
    try:
        with Stage(folder) as made:
            yield made
    finally:
        for name, module in list(sys.modules.items()):
            if (getattr(module, "__file__", None) or "").startswith(str(folder)):
                del sys.modules[name]


class Runner:
    """Runs the blocks of a page, in order, on a stage.

    Attributes:
        names: of the page's Python, which is one program unless a mark says otherwise.
    """

    def __init__(self, page: Path, stage: Stage) -> None:
        self.page = page
        self.stage = stage
        self.names: dict[str, object] = {"__name__": "page"}
        self._faults: list[str] = []

    def run(self) -> None:
        """Run the page; fails with all that is wrong in it."""
        for block, follower in pairwise([*blocks(self.page), None]):
            assert block is not None
            is_output = follower is not None and follower.language == "output" and follower.mark("of") is None
            try:
                self._run(
                    block,
                    follower.expects(follower.text, follower.line + 1) if follower is not None and is_output else None,
                )
            except Exception as error:
                raise AssertionError("\n".join([*self._faults, f"{block.where}: {error}"])) from error
        if os.environ.get("QMF_DOCS_REFRESH"):
            refresh(self.page, self.stage.wrong)
        assert not self._faults, "\n" + "\n".join(self._faults)

    def _run(self, block: Block, expected: Expected | None) -> None:
        if (block.mark("not run") is not None or block.language == "text") and block.mark("file") is None:
            return
        for kind, value in block.marks:
            if kind == "run":
                self._note(block.where, self.stage.run(Command(block.line, "$", value, None), self._patience))
            elif kind == "end":
                self.stage.end(value)
        if block.language == "output":
            if name := block.mark("of"):
                self._note(
                    block.where, self.stage.said(name, block.expects(block.text, block.line + 1), self._patience)
                )
        elif name := block.mark("file"):
            path = Path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        elif name := block.mark("part of"):
            path = Path(name) if Path(name).exists() else ROOT / name
            if block.text not in path.read_text(encoding="utf-8"):
                self._note(block.where, f"  is not a part of {name}")
        elif block.language in ("console", "sh"):
            for command in commands(block) if block.language == "console" else lines(block, expected):
                where = f"{block.where_of(command.line)}: {command.text}"
                self._note(where, self.stage.run(command, self._patience))
        elif block.language == "python":
            self._python(block, expected)
        elif block.language == "sql":
            from docs.duck import query

            self._note(block.where, self.stage.until_it_fits(expected or Expected(""), 0.0, lambda: query(block.text)))
        else:
            raise PageError(f"how is a block of the language {block.language!r} run?")

    def _python(self, block: Block, expected: Expected | None) -> None:
        code = self.stage.as_here(_WAIT.sub(_patient, block.text))
        if name := block.mark("program"):
            path = Path(name).absolute()
            path.write_text(code, encoding="utf-8")
            fault = self.stage.run_python(path, expected, self._patience)
        else:
            importlib.invalidate_caches()
            # Empty lines in front keep line numbers in tracebacks right.
            compiled = compile("\n" * block.line + code, str(self.page), "exec")
            repeated = block.mark("repeat") is not None
            patience = self._patience if repeated else 0.0
            fault = self.stage.until_it_fits(
                expected or Expected(""), patience, lambda: self._printed(compiled, repeated)
            )
        self._note(block.where, fault)

    def _printed(self, code: CodeType, repeated: bool) -> str:
        """What code of the page prints; if it is to be repeated, an error is printed, too."""
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            try:
                exec(code, self.names)
            except Exception as error:
                if not repeated:
                    raise
                print(error)
        return printed.getvalue()

    @property
    def _patience(self) -> float:
        """Seconds to wait for what fits: after a fault, the rest of the page is only looked at."""
        return 1.0 if self._faults else WAIT_LIMIT

    def _note(self, where: str, fault: str) -> None:
        if fault:
            self._faults.append(f"{where}\n{fault}")


_settle = AgentTracker.settle


async def _patient_settle(self: AgentTracker, limit: float) -> None:
    """Wait as a console does when it was opened, but longer: on a busy machine the broker's own agent answers alone."""
    await _settle(self, limit)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(WAIT_LIMIT if limit else 0):
            while all(agent.is_broker for agent in self.agents):
                await asyncio.sleep(0.01)


def _patient(match: re.Match[str]) -> str:
    return f"{match[1]}{int(match[2]) * 6}"


def run_page(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a page, named from the top of the checkout, in an empty folder."""
    with stage(folder, monkeypatch) as made:
        Runner(ROOT / name, made).run()
