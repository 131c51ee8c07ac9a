"""`qmf-broker` as a user runs it."""

from __future__ import annotations

import re
import signal
import socket
import sys
from pathlib import Path

import pytest
from support.processes import Process, running
from support.waiting import PATIENCE

from qmf import __version__
from qmf.broker.daemon.cli import main

BROKER = (sys.executable, "-W", "error", "-m", "qmf.broker")
TLS = Path(__file__).resolve().parents[2] / "bus" / "tls"


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_says_where_it_listens_and_ends_cleanly_with_clients(number: signal.Signals) -> None:
    with running(*BROKER, "--port", "0") as broker:
        line = broker.wait_for("Listening")
        match = re.fullmatch(r"Listening on amqp://127\.0\.0\.1:(\d+)", line)
        assert match is not None
        with socket.create_connection(("127.0.0.1", int(match[1]))) as client:
            client.sendall(b"AMQP\x00\x01\x00\x00")
            assert client.recv(8) == b"AMQP\x00\x01\x00\x00"
            assert broker.end(number) == 0
        assert broker.lines == [line]


@pytest.mark.slow
def test_verbose_logs_and_tls_is_shown_in_the_url() -> None:
    args = ("--tls-cert", str(TLS / "cert.pem"), "--tls-key", str(TLS / "key.pem"), "--verbose", "--queue", "jobs")
    with running(*BROKER, "--port", "0", *args) as broker:
        broker.wait_for("Listening on amqps://127.0.0.1:")
        assert broker.end() == 0


@pytest.mark.slow
def test_a_port_in_use_is_one_line_and_exit_code_2() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        broker = Process(*BROKER, "--port", str(port))
        line = broker.wait_for("cannot")
        assert line == f"qmf-broker: cannot listen on 127.0.0.1 port {port}: address already in use"
        broker.popen.wait(PATIENCE)
        assert broker.end() == 2


def test_a_host_that_is_not_ours(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--host", "192.0.2.1", "--port", "0"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(r"qmf-broker: cannot listen on 192\.0\.2\.1 port 0: .+\n", err)


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        (["--port", "70000"], "'70000' is not a port"),
        (["--port", "amqp"], "'amqp' is not a port"),
        (["--max-messages", "0"], "not a whole number above 0"),
        (["--no-such-option"], "unrecognized arguments"),
    ],
)
def test_bad_arguments(args: list[str], reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(args)
    assert caught.value.code == 2
    assert reason in capsys.readouterr().err


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        (["--users", "{tmp}/none"], "No such file"),
        (["--tls-cert", "{tmp}/none"], "cannot read TLS certificate"),
        (["--tls-cert", "{tmp}/text"], "cannot use TLS certificate"),
        (["--tls-key", "{tmp}/text"], "--tls-key needs --tls-cert"),
    ],
)
def test_bad_files_are_one_line(
    args: list[str], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text").write_text("text", encoding="utf-8")
    assert main([arg.format(tmp=tmp_path) for arg in args]) == 2
    err = capsys.readouterr().err
    assert err.startswith("qmf-broker: ")
    assert reason in err
    assert err.count("\n") == 1


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"qmf-broker {__version__}\n"
