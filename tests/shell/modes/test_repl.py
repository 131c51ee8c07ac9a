"""The prompt, with keys from a pipe and no terminal."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from prompt_toolkit.history import FileHistory, InMemoryHistory
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput
from qmf_shell.modes.repl import Repl, history_path, open_history, toolbar
from qmf_shell.session.backend import ConnectionStatus
from qmf_shell.session.context import Context
from qmf_shell.session.name_cache import NameRefresher
from shell.fakes import FakeBackend, Output, full_event


@pytest.fixture
def keys() -> Iterator[PipeInput]:
    with create_pipe_input() as pipe:
        yield pipe


def run(keys: PipeInput, context: Context, output: Output, refresher: NameRefresher, typed: str) -> int:
    keys.send_text(typed)
    return Repl(context, output.screen, refresher, terminal=(keys, DummyOutput())).run()


def test_commands_run_until_quit(keys: PipeInput, context: Context, output: Output, refresher: NameRefresher) -> None:
    assert run(keys, context, output, refresher, "agents\rlist filesystem\rquit\ragents\r") == 0
    assert [line for line in output.lines if line.startswith(("2 agents", "org."))] == [
        "2 agents",
        "org.example:filesystem, 2 objects",
    ]


def test_pasted_lines_are_commands(keys: PipeInput, context: Context, output: Output, refresher: NameRefresher) -> None:
    pasted = "\x1b[200~agents # first\r\n# second\nlist filesystem\nnosuch\n\x1b[201~"
    assert run(keys, context, output, refresher, pasted + "\rquit\r") == 0
    assert [line for line in output.lines if line.startswith(("2 agents", "org."))] == [
        "2 agents",
        "org.example:filesystem, 2 objects",
    ]
    assert output.errors == ["error: no command 'nosuch'; `help` lists them"]


def test_ctrl_d_leaves(keys: PipeInput, context: Context, output: Output, refresher: NameRefresher) -> None:
    assert run(keys, context, output, refresher, "\x04") == 0
    assert output.lines + output.errors == []


def test_ctrl_c_clears_the_line(keys: PipeInput, context: Context, output: Output, refresher: NameRefresher) -> None:
    assert run(keys, context, output, refresher, "nonsense\x03agents\r\x04") == 0
    assert output.lines[0] == "2 agents"
    assert output.errors == []


def test_ctrl_c_cancels_a_command(
    keys: PipeInput, context: Context, backend: FakeBackend, output: Output, refresher: NameRefresher
) -> None:
    backend.error = KeyboardInterrupt()
    assert run(keys, context, output, refresher, "list\ragents\r\x04") == 0
    assert output.errors == ["error: cancelled"]
    assert output.lines[0] == "2 agents"


def test_mistakes_do_not_end_it(keys: PipeInput, context: Context, output: Output, refresher: NameRefresher) -> None:
    assert run(keys, context, output, refresher, "list 'x\r\rfrobnicate\r# x\rquit\r") == 0
    assert len(output.errors) == 2


def test_lines_are_remembered(
    keys: PipeInput, context: Context, output: Output, refresher: NameRefresher, tmp_path: Path
) -> None:
    path = tmp_path / "state" / "qmf-shell" / "history"
    keys.send_text("agents\r\x04")
    Repl(context, output.screen, refresher, history=open_history(path), terminal=(keys, DummyOutput())).run()
    assert "+agents" in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_history_that_cannot_be_written_is_kept_for_the_session(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert isinstance(open_history(tmp_path / "file" / "history"), InMemoryHistory)
    assert isinstance(open_history(None), InMemoryHistory)
    assert isinstance(open_history(tmp_path / "history"), FileHistory)


@pytest.mark.parametrize(
    ("environ", "path"),
    [
        ({"XDG_STATE_HOME": "/x", "HOME": "/h"}, "/x/qmf-shell/history"),
        ({"XDG_STATE_HOME": "relative", "HOME": "/h"}, "/h/.local/state/qmf-shell/history"),
        ({"HOME": "/h"}, "/h/.local/state/qmf-shell/history"),
        ({}, None),
    ],
)
def test_history_path(environ: dict[str, str], path: str | None) -> None:
    assert history_path(environ) == (None if path is None else Path(path))


def test_toolbar(context: Context, backend: FakeBackend) -> None:
    def text() -> str:
        return "".join(part[1] for part in toolbar(context)).strip()

    assert text() == "amqp://127.0.0.1:5672  2 agents"
    context.events.add(full_event())
    assert text().endswith("1 event")
    backend.status = ConnectionStatus("amqp://h\x1b[31m", False, "closed\x07")
    assert text() == "amqp://h\\x1b[31m  not connected: closed\\x07"
