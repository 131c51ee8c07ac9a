"""`find`."""

from __future__ import annotations

import pytest
from qmf_shell.session.context import Context
from shell.fakes import SCHEMAS, FakeBackend, filesystem
from shell.line_runner import printed
from shell.looked import QUEUE, queue


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


@pytest.mark.parametrize("count", [100, 400])
def test_no_more_are_asked_for_than_are_shown(context: Context, backend: FakeBackend, count: int) -> None:
    backend.keeps_limits = True
    backend.records = [filesystem(f"/home/{number}") for number in range(count)]
    lines = printed(context, "find -n 3 /home")
    assert (lines[0], lines[-1]) == (f"{count} matches", f"{count - 3:,} more; find -n 0 shows all")
    # However many there are: agents search, and send so many.
    assert backend.limits == [3]
    assert len(printed(context, "find -n 0 /home")) == 3 + count


def test_own_objects_of_a_broker_are_not_among_the_first(
    context: Context, backend: FakeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SCHEMAS, QUEUE.key, QUEUE)
    backend.keys.append(QUEUE.key)
    backend.keeps_limits = True
    backend.records = [queue(f"qmf-in-{at}") for at in range(4)] + [queue(f"orders-{at}") for at in range(60)]
    lines = printed(context, "find -n 2 queue")
    assert backend.limits == [2, 32]
    assert not any("qmf-in-" in line for line in lines)
    assert lines[0] == "up to 61 matches"
