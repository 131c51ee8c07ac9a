"""The broker in the background: started, checked, stopped; its process ids."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from support.processes import running
from support.waiting import WAIT_LIMIT, wait_until

from qmf.broker.daemon import pid_files
from qmf.broker.daemon.cli import main
from qmf.broker.daemon.pid_files import DaemonError, hold, port_file, stop
from qmf.client import BrokerAgent
from qmf.messaging import ConnectionError

BROKER = (sys.executable, "-W", "error", "-m", "qmf.broker")


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*BROKER, *words], capture_output=True, text=True, timeout=2 * WAIT_LIMIT, check=False)


@pytest.mark.slow
def test_a_broker_in_the_background(tmp_path: Path) -> None:
    log, pid_dir = tmp_path / "log", str(tmp_path / "pids")
    pid_file = tmp_path / "broker.pid"
    words = ("--log-to-file", str(log), "--pidfile", str(pid_file), "--log-enable", "info+")
    started = run("--daemon", "--port", "0", "--pid-dir", pid_dir, *words, "--worker-threads", "3")
    try:
        assert started.returncode == 0, started.stderr
        assert started.stderr == "qmf-broker: warning: --worker-threads 3 has no effect: one thread does all the work\n"
        port = int(started.stdout)
        where = ("--port", str(port), "--pid-dir", pid_dir)
        checked = run("--check", *where)
        assert (checked.returncode, checked.stdout) == (0, pid_file.read_text(encoding="ascii"))
        assert os.getsid(int(checked.stdout)) == int(checked.stdout)
        with BrokerAgent.connect(f"127.0.0.1:{port}", timeout=WAIT_LIMIT) as broker:
            assert broker.getLogLevel() == {"level": "info+"}
            broker.setLogLevel("debug+:Broker")
            assert broker.getLogLevel() == {"level": "debug+:Broker"}
        again = run("--daemon", *where, *words)
        assert again.returncode == 1
        assert again.stderr == f"qmf-broker: cannot listen on 127.0.0.1 port {port}: address already in use\n"
        ended = run("--quit", *where)
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    finally:
        end(pid_file)
    gone = run("--check", *where)
    assert (gone.returncode, gone.stdout) == (1, "")
    assert list((tmp_path / "pids").iterdir()) == []
    lines = log.read_text(encoding="utf-8").splitlines()
    assert any(
        re.fullmatch(rf".* \[Broker\] notice started as process \d+ on amqp://.*:{port}", line) for line in lines
    )
    assert any(line.endswith(" notice ended") for line in lines)
    assert any(re.fullmatch(rf".* \[Broker\] info listening on amqp://127\.0\.0\.1:{port}", line) for line in lines)


def end(pid_file: Path) -> None:
    """Whatever happened before, nothing is left running."""
    stop(pid_file, signal.SIGKILL, WAIT_LIMIT)


def test_what_is_not_running(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--pid-dir", str(tmp_path), "--port", "5"]
    assert main(["--check", *where]) == 1
    assert capsys.readouterr() == ("", "")
    for option in ("--quit", "--kill"):
        assert main([option, *where]) == 1
        assert capsys.readouterr().err == f"qmf-broker: no broker is running: {tmp_path}/qmf-broker.5.pid\n"
    # A file that was left behind: its process id may belong to any program.
    port_file(tmp_path, 5).write_text(f"{os.getpid()}\n", encoding="ascii")
    assert main(["--quit", *where]) == 1


HOLD = """
import sys, time
from pathlib import Path
from qmf.broker.daemon.pid_files import hold
with hold(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_held_file(tmp_path: Path, number: signal.Signals) -> None:
    path = tmp_path / "folder" / "pid"
    with running(sys.executable, "-c", HOLD, str(path)) as process:
        process.wait_for("held")
        assert pid_files.running(path) == process.popen.pid
        with pytest.raises(DaemonError, match=f"belongs to the running process {process.popen.pid}"), hold(path):
            pass
        assert stop(path, number, WAIT_LIMIT)
        assert pid_files.running(path) is None
        wait_until(lambda: process.popen.poll() is not None, "the end of the process")
        process.end()


def test_files_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="ascii")
    with pytest.raises(DaemonError, match="cannot write"), hold(tmp_path / "file" / "pid"):
        pass


@pytest.mark.slow
def test_a_socket_that_is_open_already() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        descriptor, port = listening.fileno(), listening.getsockname()[1]
        command = ["--socket-fd", str(descriptor)]
        process = subprocess.Popen([*BROKER, *command], stdout=subprocess.PIPE, text=True, pass_fds=[descriptor])
    assert process.stdout is not None
    with process.stdout:
        try:
            assert process.stdout.readline() == f"Listening on amqp://127.0.0.1:{port}\n"
            # A broker that ends does not always answer.
            with (
                BrokerAgent.connect(f"127.0.0.1:{port}", timeout=WAIT_LIMIT) as broker,
                contextlib.suppress(ConnectionError),
            ):
                broker.call("shutdown")
            assert process.wait(WAIT_LIMIT) == 0
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--auth", "yes"], "--auth yes needs --users"),
        (["--auth", "no", "--users", "x"], "--auth no lets everybody in"),
        (["--require-encryption"], "--require-encryption needs --tls-cert"),
        (["--acl-file", "x"], "Unable to open ACL file 'x'"),
        (["--max-queues-per-user", "1"], "--max-queues-per-user needs --acl-file"),
        (["--socket-fd", "999"], "--socket-fd 999: Bad file descriptor"),
        (["--log-enable", "loud"], "log rule 'loud'"),
    ],
)
def test_options_that_cannot_be(words: list[str], reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--port", "0"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"qmf-broker: {reason}")
    assert err.count("\n") == 1
