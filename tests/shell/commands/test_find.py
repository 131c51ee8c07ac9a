"""`find`."""

from __future__ import annotations

import pytest
from qmf_shell.session.context import Context
from shell.fakes import FakeBackend, filesystem
from shell.line_runner import printed


@pytest.mark.usefixtures("family")
def test_find(context: Context) -> None:
    lines = printed(context, "find HOUSES")
    assert lines[0] == "1 match"
    assert lines[3].split() == ["101", "filesystem", "/home", "label", "houses"]
    rows = [line.split()[1:3] for line in printed(context, "find space")[3:]]
    assert rows == [["event", "org.example:filesystemFull"]]
    assert any("method" in line and "echo" in line for line in printed(context, "find send back"))
    assert printed(context, "find nothing like this") == ["Nothing contains 'nothing like this'."]


@pytest.mark.usefixtures("family")
def test_find_has_a_limit(context: Context) -> None:
    lines = printed(context, "find -n 3 /home")
    assert lines[0] == "26 matches"
    assert lines[-1] == "23 more; find -n 0 shows all"
    assert len(printed(context, "find -n 0 /home")) == 3 + 26


def test_find_searches_maps_and_numbers(context: Context, backend: FakeBackend) -> None:
    backend.records = [filesystem("/", options={"a": ["needle"]}), filesystem("/b", threshold=77)]
    assert printed(context, "find needle")[3].split()[3:] == ["options", "needle"]
    assert any("threshold" in line for line in printed(context, "find 77"))
