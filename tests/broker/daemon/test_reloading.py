"""What the broker reads again on SIGHUP."""

from __future__ import annotations

import contextlib
import logging
import re
import signal
import socket
import ssl
import sys
from pathlib import Path

import pexpect
import pytest
import trustme
from support.processes import running
from support.waiting import WAIT_LIMIT, wait_until

from qmf.broker import Broker
from qmf.broker.daemon.log_output import LineForm, LogOutput, LogWriter
from qmf.broker.daemon.log_rules import LogRules
from qmf.broker.daemon.reloading import Reloader
from qmf.broker.daemon.tls import BrokerTls, TlsOptions
from qmf.bus import AmqpBus
from qmf.errors import AuthenticationError
from qmf.messaging import Connection

BROKER = (sys.executable, "-W", "error", "-m", "qmf.broker")


def writer() -> LogWriter:
    return LogWriter(LogRules.parse(["notice+"]), LineForm(time=False, category=False, level=False))


async def may(broker: Broker, user: str, password: str) -> bool:
    bus = AmqpBus(f"amqp://{user}:{password}@127.0.0.1:{broker.port}")
    try:
        await bus.open()
    except AuthenticationError:
        return False
    await bus.close()
    return True


async def test_users(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    file = tmp_path / "users"
    file.write_text("anna:one\n")
    async with Broker(port=0, users={"anna": "one"}) as broker:
        reloader = Reloader(broker, writer(), file, None, None)
        stays = AmqpBus(f"amqp://anna:one@127.0.0.1:{broker.port}")
        await stays.open()
        file.write_text("anna:two\nbert:three\n")
        reloader.reload()
        assert "SIGHUP: read again: 2 users" in caplog.text
        assert [await may(broker, *user) for user in (("anna", "one"), ("anna", "two"), ("bert", "three"))] == [
            False,
            True,
            True,
        ]
        assert (stays.connected, broker.connections) == (True, 1)
        for wrong in ("bert three\n", "anna:$scrypt$nonsense\n", ""):
            file.write_text(wrong)
            reloader.reload()
        file.unlink()
        reloader.reload()
        assert await may(broker, "bert", "three")
        await stays.close()
    problems = [text for text in caplog.messages if "the users stay as they were" in text]
    assert len(problems) == 4
    assert "expected name:password" in problems[0]
    assert "No such file" in problems[3]


def serial(port: int, authority: trustme.CA) -> int:
    """Of the certificate that a new connection gets."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    with (
        socket.create_connection(("127.0.0.1", port), timeout=WAIT_LIMIT) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as secure,
    ):
        found = secure.getpeercert()
    assert found
    return int(str(found["serialNumber"]), 16)


def write(authority: trustme.CA, cert: Path, key: Path) -> int:
    """A new certificate in the files; its serial number."""
    issued = authority.issue_cert("localhost")
    cert.write_bytes(issued.cert_chain_pems[0].bytes())
    key.write_bytes(issued.private_key_pem.bytes())
    from cryptography import x509

    return x509.load_pem_x509_certificate(cert.read_bytes()).serial_number


@pytest.mark.slow
def test_a_running_broker(tmp_path: Path) -> None:
    authority = trustme.CA()
    users, cert, key, log = (tmp_path / name for name in ("users", "cert", "key", "log"))
    users.write_text("anna:one\n")
    first = write(authority, cert, key)
    audit = tmp_path / "audit"
    files = ["--users", str(users), "--tls-cert", str(cert), "--tls-key", str(key), "--log-to-file", str(log)]
    files += ["--audit-log", str(audit)]
    with running(*BROKER, "--port", "0", *files) as broker:
        match = re.fullmatch(r"Listening on amqps://127\.0\.0\.1:(\d+)", broker.wait_for("Listening"))
        assert match is not None
        port = int(match[1])
        assert serial(port, authority) == first
        second = write(authority, cert, key)
        users.write_text("anna:one\nbert:two\n")
        log.rename(tmp_path / "log.1")
        audit.rename(tmp_path / "audit.1")
        broker.popen.send_signal(signal.SIGHUP)
        wait_until(
            lambda: log.exists() and "1 log file, the audit log, 2 users, the certificate" in log.read_text(),
            "the new log",
        )
        assert serial(port, authority) == second
        key.write_bytes(authority.issue_cert("localhost").private_key_pem.bytes())
        broker.popen.send_signal(signal.SIGHUP)
        wait_until(lambda: "the certificate stays as it was" in log.read_text(), "the problem")
        assert serial(port, authority) == second
        ca = tmp_path / "ca"
        authority.cert_pem.write_to_path(str(ca))
        with Connection.establish(
            f"amqps://localhost:{port}", username="bert", password="two", ssl_trustfile=str(ca)
        ) as connection:
            connection.session()
        assert broker.end() == 0
    assert '"user": "bert"' in audit.read_text()
    assert (tmp_path / "audit.1").exists()
    assert "started as process" in (tmp_path / "log.1").read_text()


def test_a_certificate_that_cannot_be_used_changes_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    authority = trustme.CA()
    cert, key = tmp_path / "cert", tmp_path / "key"
    write(authority, cert, key)
    tls = BrokerTls(TlsOptions(cert=cert, key=key))
    broker = Broker(port=0, ssl_context=tls.context)
    reloader = Reloader(broker, writer(), None, tls, None)
    cert.write_text("nothing")
    reloader.reload()
    cert.unlink()
    reloader.reload()
    refused = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(refused) == 2, refused
    assert all("cert" in text for text in refused), refused


def test_log_files_that_cannot_be_opened_go_on(tmp_path: Path) -> None:
    kept, gone = tmp_path / "kept", tmp_path / "folder" / "gone"
    gone.parent.mkdir()
    log = writer()
    reloader = Reloader(Broker(port=0), log, None, None, None)
    with log.writing(LogOutput(stderr=False, files=(str(gone), str(kept)))):
        moved = gone.parent.rename(tmp_path / "moved")
        kept.rename(tmp_path / "kept.1")
        reloader.reload()
    expected = f"SIGHUP: the log goes on as before: cannot log to {gone}: No such file or directory\n"
    assert (moved / "gone").read_text() == kept.read_text() == expected + "SIGHUP: read again: nothing\n"
    assert (tmp_path / "kept.1").read_text() == ""


@pytest.mark.slow
def test_a_broker_ends_with_its_terminal() -> None:
    broker = pexpect.spawn(BROKER[0], [*BROKER[1:], "--port", "0"], timeout=WAIT_LIMIT, encoding="utf-8")
    broker.expect("Listening")
    broker.kill(signal.SIGHUP)
    broker.expect("SIGHUP: read again: nothing")
    # pexpect complains about a program that does not end within a tenth of a second.
    with contextlib.suppress(pexpect.ExceptionPexpect):
        broker.close(force=False)
    wait_until(lambda: not broker.isalive(), "the end of the broker")
