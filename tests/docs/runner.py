"""Runs a page: each block by its language and its marks, and collects what is not as the page says."""

from __future__ import annotations

import contextlib
import importlib
import io
import re
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from docs.compare import Expected
from docs.page import ROOT, Block, Command, PageError, blocks, commands, lines
from docs.stage import Stage
from support.waiting import PATIENCE

#: Seconds that calls of a page's code wait at most: enough for its reader, too few for a busy machine.
_WAIT = re.compile(r"(\btimeout=|\.wait\()(\d+)\b")


@contextlib.contextmanager
def stage(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """A stage in a folder, which is the current directory; modules that a page makes there are forgotten afterwards."""
    monkeypatch.chdir(folder)
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
            output = follower if follower is not None and follower.language == "output" else None
            try:
                self._run(block, output.expects(output.text) if output is not None else None)
            except Exception as error:
                raise AssertionError("\n".join([*self._faults, f"{block.where}: {error}"])) from error
        assert not self._faults, "\n" + "\n".join(self._faults)

    def _run(self, block: Block, expected: Expected | None) -> None:
        if block.mark("not run") is not None or block.language in ("text", "output"):
            return
        for line in block.marks.get("run", ()):
            self._note(block.where, self.stage.run(Command(block.line, "$", line, None), self._patience))
        if name := block.mark("file"):
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
        else:
            raise PageError(f"how is a block of the language {block.language!r} run?")

    def _python(self, block: Block, expected: Expected | None) -> None:
        code = self.stage.put_broker(_WAIT.sub(_patient, block.text))
        if name := block.mark("program"):
            path = Path(name).absolute()
            path.write_text(code, encoding="utf-8")
            fault = self.stage.run_python(path, expected, self._patience)
        else:
            importlib.invalidate_caches()
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                # Empty lines in front keep line numbers in tracebacks right.
                exec(compile("\n" * block.line + code, str(self.page), "exec"), self.names)
            fault = (expected or Expected("")).difference(self.stage.as_on_page(printed.getvalue()))
        self._note(block.where, fault)

    @property
    def _patience(self) -> float:
        """Seconds to wait for what fits: after a fault, the rest of the page is only looked at."""
        return 1.0 if self._faults else PATIENCE

    def _note(self, where: str, fault: str) -> None:
        if fault:
            self._faults.append(f"{where}\n{fault}")


def _patient(match: re.Match[str]) -> str:
    return f"{match[1]}{int(match[2]) * 6}"


def run_page(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a page, named from the top of the checkout, in an empty folder."""
    with stage(folder, monkeypatch) as made:
        Runner(ROOT / name, made).run()
