"""`qmf-printevents`, with a real broker."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from qmf_shell.printevents import main
from shell.terminals import WAIT_LIMIT, environment, run
from support.scripted_agent import ScriptedAgent

from qmf._loop_thread import LoopThread
from qmf.agent import Agent, AgentThread
from qmf.broker import EmbeddedBroker
from qmf.bus import AmqpBus
from qmf.models.host.agent import FilesystemAboveThreshold

EVENTS = (sys.executable, "-m", "qmf_shell.printevents")


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (["--nonsense"], "--nonsense"),
        (["-s", "loud"], "'loud'"),
        (["-w", "a >"], "expected a value"),
        (["-w", "a = b )"], "')'"),
        (["-n", "0"], "'0'"),
    ],
)
def test_wrong_usage(args: list[str], word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(args) == 64
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert word in err


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert "examples:" in capsys.readouterr().out


def above(percent: float) -> FilesystemAboveThreshold:
    return FilesystemAboveThreshold(mountPoint="/data", device="sda", percent=percent, threshold=90, free=7)


class Program:
    """A running qmf-printevents."""

    def __init__(self, home: Path, *args: str) -> None:
        self.process = subprocess.Popen(
            [*EVENTS, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(home)
        )

    def line_of(self, agent: AgentThread, percent: float) -> str:
        """The first line. Its subscription cannot be observed, so events are raised until it prints one."""
        import threading

        assert self.process.stdout is not None
        lines: list[str] = []
        reader = threading.Thread(target=lambda: lines.append(self.process.stdout.readline()), daemon=True)  # type: ignore[union-attr]
        reader.start()
        for _ in range(int(WAIT_LIMIT / 0.05)):
            agent.agent.raise_event(above(percent))
            reader.join(0.05)
            if lines:
                break
        return lines[0].rstrip("\n")

    def end(self) -> tuple[int, str]:
        """End it by Ctrl-C; its exit code and its output on stderr."""
        self.process.send_signal(2)
        _, err = self.process.communicate(timeout=WAIT_LIMIT)
        return self.process.returncode, err


@pytest.mark.slow
def test_events_of_a_real_broker(broker: EmbeddedBroker, agent: AgentThread, tmp_path: Path) -> None:
    program = Program(tmp_path, broker.url)
    assert re.fullmatch(
        r"\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4} WARN  qmf\.host:filesystemAboveThreshold "
        rf"broker={re.escape(broker.url)} mountPoint=/data device=sda percent=93\.5 threshold=90 free=7",
        program.line_of(agent, 93.5),
    )
    code, err = program.end()
    assert code == 0
    assert f"NOTIC qmf-printevents:brokerConnected broker={broker.url}" in err


@pytest.mark.slow
def test_filters_json_and_count(broker: EmbeddedBroker, agent: AgentThread, tmp_path: Path) -> None:
    args = (broker.url, "--json", "-n", "1", "-s", "warn", "-c", "filesystemabovethreshold", "-w", "percent > 95")
    program = Program(tmp_path, *args)
    agent.agent.raise_event(above(50))
    event = json.loads(program.line_of(agent, 97))
    assert (event["severity"], event["arguments"]["percent"]) == ("warn", 97)
    _, err = program.process.communicate(timeout=WAIT_LIMIT)
    assert program.process.returncode == 0
    assert "Traceback" not in err


@pytest.mark.slow
def test_several_brokers_reconnects_and_heartbeats(agent: AgentThread, broker: EmbeddedBroker, tmp_path: Path) -> None:
    with EmbeddedBroker() as other:
        port, lost = other.port, other.url
    program = Program(tmp_path, broker.url, lost, "--heartbeats", "--json", "--timeout", "3")
    assert program.process.stdout is not None
    first = json.loads(program.process.stdout.readline())
    assert (first["event"], first["broker"]) == ("qmf:heartbeat", broker.url)
    with (
        EmbeddedBroker(port=port) as again,
        Agent.run_in_thread(again.url, vendor="example.org", product="late", interval=0.5),
    ):
        while json.loads(program.process.stdout.readline())["broker"] != lost:
            pass
    code, err = program.end()
    assert code == 0
    assert f"brokerDisconnected broker={lost}" in err
    assert f"brokerConnected broker={lost}" in err


@pytest.mark.slow
def test_heartbeats_are_chosen_as_events_are(agent: AgentThread, broker: EmbeddedBroker, tmp_path: Path) -> None:
    with Agent.run_in_thread(broker.url, vendor="example.org", product="other", instance="2", interval=0.5):
        choice = ("--heartbeats", "-a", "other", "-c", "nosuch", "-w", "nosuch = 1")
        done = run(tmp_path, broker.url, *choice, "--json", "-n", "3", program=EVENTS)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert {(row["event"], row["severity"], row["agent"]) for row in rows} == {
        ("qmf:heartbeat", "inform", "example.org:other:2")
    }


@pytest.mark.slow
def test_no_connection(tmp_path: Path) -> None:
    with EmbeddedBroker() as other:
        url = other.url
    done = run(tmp_path, url, "--timeout", "3", program=EVENTS)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"no connection to {url}" in done.stderr
    assert run(tmp_path, "amqp://:nonsense:", program=EVENTS).returncode == 64


@pytest.mark.slow
def test_events_that_did_not_arrive_are_printed_and_not_counted(capsys: pytest.CaptureFixture[str]) -> None:
    async def raise_every_second_one() -> None:
        for sequence in itertools.count(1, 2):
            await agent.raise_event({"name": "a"}, sequence=sequence)
            await asyncio.sleep(0.02)

    loop = LoopThread("test-agent")
    with EmbeddedBroker() as broker:
        agent = ScriptedAgent(AmqpBus(broker.url))
        loop.run(agent.start())
        loop.call_soon(lambda: tasks.append(asyncio.ensure_future(raise_every_second_one())))
        tasks: list[asyncio.Task[None]] = []
        assert main([broker.url, "--json", "-n", "3", "-s", "warn", "--timeout", str(WAIT_LIMIT)]) == 0
        loop.call_soon(tasks[0].cancel)
        loop.run(agent.bus.close())
    loop.stop()
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [record["event"].rpartition(":")[2] for record in records] == ["widgetAlarm", *["lost", "widgetAlarm"] * 2]
    assert [record["arguments"] for record in records if record["event"] == "qmf:lost"] == [{"count": 1}] * 2
