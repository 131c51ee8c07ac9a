"""The broker's own agent, with the broker as a program."""

from __future__ import annotations

import asyncio
import signal
import sys

import pytest
from broker.management.managed import knows_agent, queues
from support.processes import running

from qmf.broker.daemon.cli import main
from qmf.console.aio import Client
from qmf.models.broker import console as remote

BROKER = (sys.executable, "-W", "error", "-m", "qmf.broker")


def url_of(line: str) -> str:
    return line.removeprefix("Listening on ")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_the_program_is_managed(number: signal.Signals) -> None:
    with running(*BROKER, "--port", "0", "--management-interval", "0.5", "--queue", "jobs") as broker:
        line = await asyncio.to_thread(broker.wait_for, "Listening")
        async with Client(url_of(line), settle=0.0) as client:
            await knows_agent(client)
            (it,) = await client.objects(remote.Broker)
            assert it.mgmtPubInterval == 1
            assert "jobs" in await queues(client)
            assert await asyncio.to_thread(broker.end, number) == 0
        assert broker.lines == [line]


@pytest.mark.slow
async def test_the_program_can_do_without() -> None:
    with running(*BROKER, "--port", "0", "--no-management") as broker:
        url = url_of(await asyncio.to_thread(broker.wait_for, "Listening"))
        async with Client(url, settle=0.0) as client:
            assert await client.locate(settle=0.1) == []
        assert await asyncio.to_thread(broker.end) == 0


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "70000", "often"])
def test_intervals_that_are_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([f"--management-interval={text}"])
    assert caught.value.code == 2
    assert f"'{text}' is not a number of seconds above 0" in capsys.readouterr().err
