"""`qmf-broker` as a user runs it."""

from __future__ import annotations

import io
import re
import signal
import socket
import sys
from pathlib import Path

import pexpect
import pytest
import trustme
from support.processes import Process, running
from support.waiting import WAIT_LIMIT

from qmf import __version__
from qmf.broker.daemon.cli import main
from qmf.broker.daemon.options import parse
from qmf.broker.daemon.security import security_warnings
from qmf.broker.daemon.tls import BrokerTls, TlsOptions
from qmf.users.files import read_users
from qmf.users.users import Users

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
        broker.popen.wait(WAIT_LIMIT)
        assert broker.end() == 2


def test_a_host_that_is_not_ours(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--host", "192.0.2.1", "--port", "0", "--auth", "no"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(r"qmf-broker: cannot listen on 192\.0\.2\.1 port 0: .+", err.splitlines()[-1])


@pytest.mark.parametrize("host", ["192.0.2.1", "0.0.0.0", "::", ""])
def test_letting_everybody_in_from_other_machines_needs_a_word(
    host: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--host", host, "--port", "0", "--tls-cert", str(TLS / "cert.pem")]) == 2
    error = capsys.readouterr().err
    assert error == (
        f"qmf-broker: anybody who reaches {host or 'this machine'} could use the broker: give --users FILE, "
        "or --auth no if that is meant\n"
    )
    # Also in a configuration file. It fails later then, since the certificate does not exist.
    config = tmp_path / "conf"
    config.write_text(f"host={host}\nauth=no\ntls-cert=/nowhere\n")
    if host:
        assert main(["--config", str(config)]) == 2
        assert "cannot read the certificate /nowhere" in capsys.readouterr().err


def test_a_socket_that_others_reach_needs_a_word_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("0.0.0.0", 0)) as listening:
        assert main(["--socket-fd", str(listening.detach())]) == 2
    assert "anybody who reaches 0.0.0.0 could use the broker" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        (["--port", "70000"], "'70000' is not a port"),
        (["--port", "amqp"], "'amqp' is not a port"),
        (["--max-messages", "0"], "not a whole number above 0"),
        (["--queue-patterns", "("], "'(' is not a regular expression: missing ), unterminated subpattern"),
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
        (["--tls-cert", "{tmp}/none"], "cannot read the certificate"),
        (["--tls-cert", "{tmp}/text"], "has no certificate in PEM"),
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


def test_a_password_from_a_pipe_becomes_a_line_for_users(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("very secret\nmore\n"))
    assert main(["--hash-password", "ann"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith("ann:$scrypt$")
    path = tmp_path / "users"
    path.write_text(out, encoding="utf-8")
    assert Users(read_users(path)).matches("ann", "very secret")
    monkeypatch.setattr(sys, "stdin", io.StringIO("very secret\n"))
    assert main(["--hash-password"]) == 0
    assert capsys.readouterr().out.startswith("$scrypt$")


@pytest.mark.parametrize(
    ("name", "typed", "reason"),
    [("a:b", "x\n", "no colon"), ("#a", "x\n", "no # in front"), ("ann", "\n", "the password is empty")],
)
def test_passwords_that_cannot_be_used(
    name: str, typed: str, reason: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    assert main(["--hash-password", name]) == 2
    assert reason in capsys.readouterr().err


@pytest.mark.slow
def test_a_password_is_typed_twice_on_a_terminal() -> None:
    for second, seen in (("secret", r"ann:\$scrypt\$ln="), ("other", "the two passwords differ")):
        with pexpect.spawn(BROKER[0], [*BROKER[1:], "--hash-password", "ann"], encoding="utf-8", timeout=30) as child:
            child.expect("Password of ann: ")
            child.sendline("secret")
            child.expect("Once more: ")
            child.sendline(second)
            child.expect(seen)
            assert "secret" not in (child.before or "")
            child.expect(pexpect.EOF)


SECRET = "ann:$scrypt$ln=4,r=8,p=1$MTIzNDU2Nzg$" + "A" * 43


@pytest.mark.parametrize(
    ("host", "users", "tls", "expected"),
    [
        ("127.0.0.1", None, False, []),
        ("::1", None, False, []),
        ("localhost", None, False, []),
        ("0.0.0.0", "hash", True, []),
        (
            "0.0.0.0",
            None,
            True,
            [r"^listening on 0\.0\.0\.0 without users \(--users FILE\), so that anybody .* use it$"],
        ),
        ("mq1", "hash", False, [r"^listening on mq1 without TLS \(--tls-cert FILE\), so that passwords and messages"]),
        ("", None, False, [r"^listening on all addresses without users .*, and without TLS"]),
        (
            "127.0.0.1",
            "plain",
            False,
            [r"^FILE: the password of ann is plain text; qmf-users passwd"],
        ),
        ("127.0.0.1", "two", False, [r"^FILE: the passwords of 2 users are plain text"]),
        ("192.0.2.1", "plain", False, ["plain text", "listening on 192.0.2.1 without TLS"]),
    ],
)
def test_what_is_unsafe_is_one_line_each(
    host: str, users: str | None, tls: bool, expected: list[str], tmp_path: Path
) -> None:
    files: BrokerTls | None = None
    if tls:
        trustme.CA().issue_cert("mq1").private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "cert"))
        files = BrokerTls(TlsOptions(cert=tmp_path / "cert"))
    options = parse([] if users is None else ["--users", "FILE"])
    passwords = {"hash": dict([SECRET.split(":", 1)]), "plain": {"ann": "x"}, "two": {"ann": "x", "bob": "y"}}
    found = security_warnings(host, options, users=None if users is None else passwords[users], tls=files)
    assert len(found) == len(expected)
    assert all(re.search(pattern, text) for pattern, text in zip(expected, found, strict=True)), found
    assert not any("\n" in text for text in found)


def test_warnings_come_before_it_listens(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "users"
    path.write_text("ann:secret\n", encoding="utf-8")
    # An address of nobody: it cannot listen there.
    assert main(["--host", "192.0.2.1", "--users", str(path)]) == 2
    plain, listening, failed = capsys.readouterr().err.splitlines()
    assert plain.startswith(f"qmf-broker: warning: {path}: the password of ann is plain text")
    assert listening.startswith("qmf-broker: warning: listening on 192.0.2.1 without TLS")
    assert failed.startswith("qmf-broker: cannot listen on 192.0.2.1")
    assert "secret" not in f"{plain}{listening}{failed}"
