"""Broker, host agent and shell as three processes over real TCP, as an operator starts them."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator

import psutil
import pytest
from support.processes import Process, command, run, running
from support.waiting import wait_until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def broker_url() -> Iterator[str]:
    with running(command("qmf-broker"), "--port", "0") as broker:
        line = broker.wait_for("Listening on ")
        yield line.removeprefix("Listening on ")


@pytest.fixture(scope="module")
def host_agent(broker_url: str) -> Iterator[Process]:
    with running(command("qmf-host-agent"), "-b", broker_url, "--interval", "0.5", "--instance", "e2e") as agent:
        agent.wait_for("Host agent")
        yield agent


def shell(url: str, *commands: str, stdin: str | None = None) -> tuple[int, str, str]:
    args = [command("qmf-shell"), "-b", url]
    for text in commands:
        args += ["-c", text]
    done = run(args, stdin=stdin)
    assert "Traceback" not in done.stdout + done.stderr
    return done.returncode, done.stdout, done.stderr


@pytest.mark.usefixtures("host_agent")
class TestShell:
    def test_agents(self, broker_url: str) -> None:
        code, out, err = shell(broker_url, "agents")
        assert (code, err) == (0, "")
        assert ":e2e" in out

    def test_list_counts_are_true_of_the_machine(self, broker_url: str) -> None:
        code, out, err = shell(broker_url, "list")
        assert (code, err) == (0, "")
        rows = [line.split() for line in out.splitlines() if line.strip().startswith("qmf.host")]
        counts = {words[1]: int(words[2]) for words in rows}
        assert counts["system"] == 1
        assert counts["memory"] == 1
        assert counts["cpu"] == psutil.cpu_count()
        assert counts["networkinterface"] == len(psutil.net_if_addrs())

    def test_list_class_show_and_schema(self, broker_url: str) -> None:
        code, out, err = shell(broker_url, "list cpu", "schema filesystem", "show /")
        assert (code, err) == (0, "")
        assert "threshold" in out
        assert "mountPoint" in out

    def test_call(self, broker_url: str) -> None:
        code, out, err = shell(broker_url, "call e2e echo 7 hello")
        assert (code, err) == (0, "")
        assert "hello" in out
        assert "7" in out

    def test_the_same_from_a_pipe(self, broker_url: str) -> None:
        code, out, err = shell(broker_url, stdin="agents\n! a comment\nlist filesystem\n")
        assert (code, err) == (0, "")
        assert ":e2e" in out

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("list filesytem", ["filesytem", "filesystem"]),
            ("show 99999", ["99999"]),
            ("call e2e ecko", ["ecko", "echo"]),
            ("call e2e echo seven hello", ["sequence", "uint32", "seven"]),
            ("frobnicate", ["frobnicate"]),
        ],
    )
    def test_mistakes_get_one_line(self, broker_url: str, text: str, words: list[str]) -> None:
        code, _, err = shell(broker_url, text)
        assert code == 1
        assert len(err.splitlines()) == 1, err
        for word in words:
            assert word in err


def test_a_refused_connection_is_one_line_with_exit_code_2() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"amqp://127.0.0.1:{probe.getsockname()[1]}"
    for name, options in (("qmf-shell", ["-c", "list"]), ("qmf-host-agent", ["--no-wait"])):
        done = run([command(name), "-b", url, *options])
        assert done.returncode == 2, done
        assert len(done.stderr.splitlines()) == 1, done.stderr
        assert url in done.stderr
        assert "refused" in done.stderr.lower()


def test_a_port_in_use_is_one_line_with_exit_code_2() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = run([command("qmf-broker"), "--port", port])
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert port in done.stderr
    assert "in use" in done.stderr


def test_the_host_agent_outlives_its_broker() -> None:
    with running(command("qmf-broker"), "--port", "0") as broker:
        url = broker.wait_for("Listening on ").removeprefix("Listening on ")
        agent = Process(command("qmf-host-agent"), "-b", url, "--interval", "0.5", "--instance", "phoenix")
        agent.wait_for("Host agent")
        assert broker.end(signal.SIGTERM) == 0
    try:
        with running(command("qmf-broker"), "--port", url.rpartition(":")[2]) as again:
            again.wait_for("Listening on ")
            wait_until(lambda: ":phoenix" in shell(url, "agents")[1], "the agent again")
    finally:
        assert agent.end(signal.SIGINT) == 0
