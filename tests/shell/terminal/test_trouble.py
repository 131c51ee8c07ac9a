"""The real program in difficult conditions: agents and brokers that end, small screens, 10,000 objects."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.cells import cell_len
from shell.terminals import PROGRAM, WAIT_LIMIT, Terminal, environment, run

from qmf.agent import Agent
from qmf.broker import EmbeddedBroker
from qmf.hostagent import EmbeddedHostAgent
from qmf.models.host.agent import NetworkInterface

pytestmark = pytest.mark.slow

#: Escape sequences that set a colour.
COLOUR = re.compile(r"\x1b\[(?:[0-9]+;)*(?:3[0-7]|4[0-7]|9[0-7]|38|48)[;m]")


def test_an_agent_that_ends_during_a_view(tmp_path: Path) -> None:
    with (
        EmbeddedBroker() as broker,
        EmbeddedHostAgent(broker.url, 0.3) as agent,
        Terminal(["-b", broker.url, "--timeout", "2"], environment(tmp_path)) as terminal,
    ):
        terminal.ready()
        terminal.enter("watch -n 0.3 memory:physical")
        terminal.sees(r"^total +[\d,.]+ GB")
        agent.close()
        terminal.sees(r"it is gone since \d+:\d+:\d+: these are the last values")
        terminal.sees(r"^total +[\d,.]+ GB")
        terminal.child.send("q")
        terminal.ready()
        terminal.enter("show 101")
        terminal.sees(r"^error: object 101 \(memory physical\) is (gone|lost)")
        terminal.ready()
        terminal.leave()


def test_a_broker_that_restarts_during_a_view(tmp_path: Path) -> None:
    with EmbeddedBroker() as broker, EmbeddedHostAgent(broker.url, 0.3):
        port = broker.port
        terminal = Terminal(["-b", broker.url], environment(tmp_path))
        terminal.ready()
        terminal.enter("watch -n 0.3 memory:physical")
        terminal.sees(r"^total +[\d,.]+ GB")
    with terminal:
        lines = terminal.sees(r"no connection to amqp://")
        assert any(line.startswith("total ") for line in lines)
        with EmbeddedBroker(port=port) as again, EmbeddedHostAgent(again.url, 0.3):
            terminal.until(lambda lines: not any("no connection" in line or "gone" in line for line in lines))
            terminal.sees(r"q leave")
            terminal.child.send("q")
            terminal.ready()
            terminal.enter("show memory:physical")
            terminal.sees(r"^ +agent +qmf:host")
            terminal.ready()
            terminal.leave()


def test_the_toolbar_shows_a_lost_connection(tmp_path: Path) -> None:
    with EmbeddedBroker() as broker:
        terminal = Terminal(["-b", broker.url], environment(tmp_path))
        terminal.ready()
    with terminal:
        terminal.sees(r"not connected")
        terminal.enter("list")
        terminal.sees(r"^error: not connected to")
        terminal.ready()
        terminal.leave()


def test_a_terminal_that_changes_its_size(terminal: Terminal) -> None:
    terminal.enter("watch -n 0.2 process columns name, residentMemory, userTime, systemTime limit 3")
    terminal.sees(r"every 0\.2 s")
    terminal.resize(40, 20)
    lines = terminal.until(lambda lines: lines[-1].startswith(" q leave") and any(re.match("Index ", x) for x in lines))
    assert all(cell_len(line) <= 40 for line in lines)
    terminal.child.send("\x03")
    terminal.ready()
    terminal.leave()


def test_no_colour_at_the_prompt(url: str, tmp_path: Path) -> None:
    with Terminal(["-b", url], environment(tmp_path, NO_COLOR="1")) as terminal:
        terminal.ready()
        # A busy machine makes the host agent raise a warning.
        events = r"^No such events|^\d+ events?$"
        for line, pattern in (("list", "Objects by class"), ("nosuch", "^error: "), ("events -s warn", events)):
            terminal.enter(line)
            terminal.sees(pattern)
            terminal.ready()
        terminal.enter("watch -n 0.2 system")
        terminal.sees("every 0.2 s")
        terminal.child.send("\x03")
        terminal.ready()
        terminal.leave()
        assert not COLOUR.search(terminal.raw)


@pytest.mark.parametrize("command", ["events -f", "watch -n 0.2 memory", "heartbeats -f"])
def test_ctrl_c_ends_a_script(url: str, tmp_path: Path, command: str) -> None:
    with Terminal(["-b", url, "-c", command, "-c", "list"], environment(tmp_path)) as terminal:
        terminal.sees("q leave")
        terminal.child.send("\x03")
        assert terminal.end() == 130
        assert "Objects by class" not in terminal.raw


def test_ctrl_c_without_a_terminal(url: str, tmp_path: Path) -> None:
    with subprocess.Popen(
        [*PROGRAM, "-b", url, "--json", "-c", "watch -n 0.2 memory:physical"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(tmp_path),
        text=True,
    ) as process:
        assert process.stdout is not None
        json.loads(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=WAIT_LIMIT)
    assert (process.returncode, err) == (130, "")


def test_calls_of_many_ask_first(url: str, tmp_path: Path) -> None:
    with (
        EmbeddedBroker() as other,
        EmbeddedHostAgent(other.url, 0.5),
        Terminal(["-b", url, "-b", other.url], environment(tmp_path)) as terminal,
    ):
        terminal.ready()
        terminal.sees(r"2 brokers  2 agents")
        terminal.enter("call agent all echo 1 x")
        terminal.sees(r"^Call echo on 2 objects")
        terminal.child.send("n\r")
        terminal.sees(r"nothing was called")
        terminal.ready()
        terminal.enter("call agent all echo 1 x")
        terminal.until(lambda lines: sum("Call echo on 2 objects" in line for line in lines) == 2)
        terminal.child.send("y\r")
        terminal.sees(r"echo on 2 objects: 2 done, 0 failed")
        terminal.ready()
        terminal.leave()


# -- 10,000 objects ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def crowd() -> Iterator[str]:
    """A broker with an agent that has 10,000 objects."""
    with (
        EmbeddedBroker() as broker,
        Agent.run_in_thread(broker.url, vendor="example.org", product="crowd", interval=60) as agent,
    ):
        for number in range(10_000):
            port = NetworkInterface(name=f"port-{number}")
            port.bytesSent.inc(number)
            agent.agent.add(port)
        yield broker.url


def test_ten_thousand_objects_in_a_terminal(crowd: str, tmp_path: Path) -> None:
    with Terminal(["-b", crowd, "--timeout", "30"], environment(tmp_path)) as terminal:
        terminal.ready()
        terminal.enter("list networkinterface where bytesSent >= 9998 sort bytesSent desc")
        terminal.sees(r"networkinterface, 2 objects")
        terminal.sees(r"101 +port-9999 +10 kB")
        terminal.ready()
        terminal.child.send("show port-77\t")
        terminal.sees(r"port-7701 +networkinterface")
        terminal.child.send("\x03")
        terminal.ready()
        terminal.enter("show port-7777")
        terminal.sees(r"config +name +port-7777")
        terminal.ready()
        terminal.enter("watch -n 0.5 networkinterface")
        terminal.sees(r"networkinterface  10,000 objects")
        terminal.child.send("G")
        terminal.sees(r"port-9999 ")
        terminal.child.send("q")
        terminal.ready()
        terminal.enter("top -c 1 -t -l 3 networkinterface by bytesSent")
        terminal.sees(r"Top of 10,000 objects by bytesSent")
        terminal.ready()
        terminal.enter("tree")
        terminal.sees(r"9,980 more of networkinterface")
        terminal.ready()
        terminal.leave()


def test_ten_thousand_objects_in_a_pipe(crowd: str, tmp_path: Path) -> None:
    done = run(tmp_path, "-b", crowd, "--timeout", "30", "--csv", "-c", "list networkinterface columns bytesSent")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0] == "id,index,bytesSent"
    assert lines[-1] == "10100,port-9999,9999"
    assert len(lines) == 10_001
