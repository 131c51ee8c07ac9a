"""`connect` and `use`: other brokers in the same session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from qmf_shell.commands import standard
from qmf_shell.session.backend import Backend, ConnectionStatus
from qmf_shell.session.context import Context
from qmf_shell.session.name_cache import NameRefresher
from qmf_shell.session.opening import OpenSession, open_session
from shell.fakes import FakeBackend
from shell.line_runner import failure, printed, run
from support.waiting import wait_until

from qmf.agent import Agent
from qmf.broker import EmbeddedBroker
from qmf.connecting import BrokerTarget, ConnectionContext, Contexts
from qmf.models.host import agent as model

LAB = ConnectionContext(name="lab", urls=("amqp://127.0.0.1:1",), user="ann", colour="red")


@pytest.fixture
def switched(context: Context) -> list[tuple[str, str | None, str | None]]:
    """The targets of each switch: URL, user, context."""
    found: list[tuple[str, str | None, str | None]] = []

    def switch(targets: object, connection: ConnectionContext | None) -> None:
        assert isinstance(targets, tuple)
        for target in targets:
            assert isinstance(target, BrokerTarget)
            found.append((str(target), target.url.username, connection.name if connection else None))

    context.switch = switch
    return found


class Secrets:
    """Answers each question with the same password."""

    def __init__(self, password: str | None) -> None:
        self.password = password
        self.asked: list[str] = []

    def value(self, question: str, check: object, default: str | None) -> str:
        raise AssertionError(question)

    def confirm(self, question: str) -> bool:
        raise AssertionError(question)

    def secret(self, question: str) -> str | None:
        self.asked.append(question)
        return self.password


def test_connections_are_shown(context: Context, backend: FakeBackend) -> None:
    backend.status = ConnectionStatus("amqp://mq1", False, "refused", "mq1")
    lines = printed(context, "connect")
    assert lines[0] == "Connections"
    assert lines[-1].split() == ["mq1", "not", "connected", "refused"]


def test_contexts_are_shown(context: Context) -> None:
    assert printed(context, "use") == ["No contexts: the settings file defines them."]
    context.connection = LAB
    assert [line.split() for line in listed(context)] == [["lab", "yes", "amqp://127.0.0.1:1", "ann"]]


def listed(context: Context) -> list[str]:
    """The contexts that `use` shows; it has settings with one."""
    from qmf_shell.modes.executor import execute
    from shell.fakes import make_output

    output = make_output()
    output.screen.settings.contexts = Contexts({"lab": LAB})
    context.settings = output.screen.settings
    execute("use", context, output.screen)
    return output.lines[3:]


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("connect http://x", "http"),
        ("connect --ca nosuch.pem amqp://mq1", "only for TLS; write amqps://"),
        ("connect --ca /nosuch.pem amqps://mq1", "/nosuch.pem"),
        ("connect --user ann amqp://mq1", "no password for user 'ann'"),
        ("connect --nosuch amqp://mq1", "no option --nosuch"),
        ("use nosuch", "no context 'nosuch'"),
        ("use a b", "'b' is one argument too many"),
    ],
)
@pytest.mark.usefixtures("switched")
def test_mistakes(context: Context, line: str, part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QMF_PASSWORD", raising=False)
    assert part in failure(context, line)


def test_a_password_in_a_url_is_no_failure(
    context: Context, switched: list[tuple[str, str | None, str | None]]
) -> None:
    lines = printed(context, "connect amqp://ann:secret@mq1")
    assert lines[0] == "A password in a URL stays in the history; with --user NAME you are asked for it."
    assert "secret" not in "".join(lines)
    assert switched[0][1] == "ann"


def test_a_session_without_brokers(context: Context) -> None:
    assert "this session has a lake and no broker" in failure(context, "connect amqp://mq1")


def test_the_user_is_asked_for_the_password(
    context: Context, switched: list[tuple[str, str | None, str | None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("QMF_PASSWORD", raising=False)
    secrets = context.prompter = Secrets("x")
    printed(context, "connect --user ann amqp://mq1")
    assert len(secrets.asked) == 1
    assert "ann" in secrets.asked[0]
    assert switched[0][1] == "ann"
    secrets.password = None
    assert "no password" in failure(context, "connect --user bob amqp://mq1")
    assert len(switched) == 1


@pytest.fixture
def opened() -> Iterator[tuple[OpenSession, str]]:
    """A session on a broker without agents, and the URL of another with one."""
    with (
        EmbeddedBroker() as first,
        EmbeddedBroker() as second,
        Agent.run_in_thread(second.url, vendor="example.org", product="test", instance="1", interval=0.2) as agent,
        open_session([first.url], timeout=10, interval=1, follow=True, registry=standard()) as session,
    ):
        agent.agent.add(model.Memory(name="physical"))
        yield session, second.url


@pytest.mark.slow
def test_the_session_goes_on_with_another_broker(opened: tuple[OpenSession, str], tmp_path: Path) -> None:
    session, url = opened
    context = session.context
    told: list[Backend] = []
    session.on_switch(told.append)
    refresher = NameRefresher(context.backend)
    session.on_switch(refresher.use)
    refresher.start()
    try:
        assert context.backend.agents() == ()
        (line,) = run(context, f"connect {url}").lines
        assert line.startswith(f"Connected to {url}, ")
        assert line.endswith("Short ids and events begin anew.")
        assert told == [context.backend]
        wait_until(lambda: any(key.name == "memory" for key in context.classes()))
        wait_until(lambda: "physical" in "\n".join(run(context, "list memory").lines))
        assert run(context, "show 101").lines[0] == "qmf.host:memory physical"
        wait_until(lambda: any(key.name == "memory" for key in refresher.snapshot.schemas))
        # A broker that is not there: the session stays where it is.
        assert "cannot connect" in failure(context, "connect amqp://127.0.0.1:1")
        assert context.backend.status.url == url
        assert context.backend.status.connected
        assert run(context, "show 101").lines[0] == "qmf.host:memory physical"
    finally:
        refresher.close()
