"""Limits that `qmf-broker` is started with."""

from __future__ import annotations

import pytest
from broker.daemon.test_cli import BROKER
from support.processes import running

from qmf.broker.daemon.cli import main
from qmf.messaging import Connection, Message
from qmf.messaging.exceptions import MessagingError

LIMITS = ("--max-message-size", "5000", "--max-total-messages", "2", "--max-links", "3", "--max-sessions", "2")


@pytest.mark.slow
def test_limits_are_those_of_the_command_line() -> None:
    with running(*BROKER, "--port", "0", "--no-management", "--queue", "q", *LIMITS) as broker:
        url = broker.wait_for("Listening").split()[-1]
        with Connection.establish(url, timeout=30) as connection:
            session = connection.session()
            sender = session.sender("q")
            sender.send(Message("one"))
            sender.send(Message("two"))
            with pytest.raises(MessagingError, match="Maximum depth of all queues exceeded"):
                sender.send(Message("three"))
            receivers = [session.receiver("q"), session.receiver("q")]
            with pytest.raises(MessagingError, match="a connection may have 3 links"):
                session.receiver("q")
            for receiver in receivers:
                receiver.close()
            with pytest.raises(MessagingError, match="the broker takes 5000"):
                session.sender("q").send(Message("x" * 10_000))
        assert broker.end() == 0


@pytest.mark.parametrize("option", ["--max-message-size", "--max-links", "--max-sessions"])
def test_limits_that_allow_nothing_are_refused(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([option, "0"])
    assert f"{option}: '0' is not a whole number above 0" in capsys.readouterr().err
