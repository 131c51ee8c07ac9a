"""docs/history.md: every session is run on a lake that is always the same."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("duckdb")

from docs.history_lake import make
from docs.page import ROOT, blocks, commands
from qmf_shell.commands import standard
from qmf_shell.modes.executor import execute
from qmf_shell.session.context import Context
from qmf_shell.session.history_backend import HistoryBackend
from qmf_shell.session.lake_source import LakeSource, latest
from shell.fakes import make_output

PAGE = ROOT / "docs" / "history.md"


def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    monkeypatch.chdir(tmp_path)
    make(tmp_path / "lake")
    lake = LakeSource(str(tmp_path / "lake"))
    reader = lake.open()
    backend = HistoryBackend(reader, lambda: latest(reader))
    context = Context(backend, standard(), deletions=backend.deletions, lake=lake)
    sessions = [block for block in blocks(PAGE) if block.language == "console"]
    found = [item for block in sessions for item in commands(block)]
    assert len(found) > 5
    try:
        for item in found:
            output = make_output(width=100)
            context.settings = output.screen.settings
            execute(item.text, context, output.screen)
            printed = "\n".join([*output.lines, *output.errors])
            assert item.expected is not None
            assert item.expected.difference(printed) == "", item.text
    finally:
        lake.close()
        monkeypatch.undo()
        time.tzset()
