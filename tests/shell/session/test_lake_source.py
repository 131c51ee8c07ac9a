"""The lake of a session: the one that the command line names, or that of its context."""

from __future__ import annotations

from pathlib import Path

import pytest
from qmf_shell.commands import standard
from qmf_shell.session.context import Context
from qmf_shell.session.lake_source import LakeSource
from shell.fakes import FakeBackend, filesystem
from shell.line_runner import failure, printed
from shell.recorded import Put, when

from qmf.connecting.contexts import ConnectionContext

pytest.importorskip("duckdb")


def session(connection: ConnectionContext | None, lake: str | None = None) -> Context:
    """A session with a broker."""
    context = Context(FakeBackend([filesystem("/")]), standard(), connection=connection)
    context.lake = LakeSource(lake)
    return context


def test_a_context_names_the_lake_of_its_brokers(put: Put, past: Context) -> None:
    put("one", (1, 10))
    root = past.past().url
    named = session(ConnectionContext(name="shop", urls=("amqp://mq1",), lake=root))
    assert printed(named, f"at {when(2)} list till")[0] == "org.example.shop:till, 1 object"
    named.lake.close()


def test_the_command_line_takes_precedence(put: Put, past: Context, tmp_path: Path) -> None:
    put("one", (1, 10))
    other = ConnectionContext(name="shop", urls=("amqp://mq1",), lake=str(tmp_path / "none"))
    named = session(other, past.past().url)
    assert printed(named, f"at {when(2)} list till")[0] == "org.example.shop:till, 1 object"
    named.lake.close()
    assert "not a lake" in failure(session(other), f"at {when(2)} list till")
