"""`refs`."""

from __future__ import annotations

import pytest
from qmf_shell.session.context import Context
from shell.fakes import FakeBackend, filesystem
from shell.line_runner import printed


@pytest.mark.usefixtures("family")
def test_refs(context: Context) -> None:
    lines = printed(context, "refs /home")
    assert lines[0] == "References of 101 filesystem /home"
    assert lines[3].split() == ["to", "102", "filesystem", "/", "parent"]
    assert len(lines) == 3 + 1 + 25
    assert lines[4].split()[0] == "from"
    assert lines[4].split()[2:] == ["filesystem", "/home/1", "parent"]
    assert printed(context, "refs process:7") == ["process 7 has no references, in either direction."]


@pytest.mark.usefixtures("family")
def test_refs_of_the_only_object_of_a_class(context: Context) -> None:
    assert printed(context, "refs org.example:process") == ["process 7 has no references, in either direction."]


def test_a_reference_to_what_is_not_there(context: Context, backend: FakeBackend) -> None:
    backend.records = [filesystem("/home", parent=filesystem("/").identity.key)]
    assert "not found" in printed(context, "refs /home")[3]
