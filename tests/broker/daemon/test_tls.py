"""TLS of the broker: clients with certificates, ports side by side, and what cannot be used."""

from __future__ import annotations

import asyncio
import datetime
import re
import socket
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trustme
from support.processes import running
from support.waiting import WAIT_LIMIT

from qmf.broker import Broker
from qmf.broker.daemon.cli import main
from qmf.broker.daemon.tls import BrokerTls, TlsOptions
from qmf.bus import AmqpBus
from qmf.connecting.tls import TlsError, TlsFiles
from qmf.errors import AuthenticationError, ConnectError

BROKER = (sys.executable, "-W", "error", "-m", "qmf.broker")


STAT = "import sys; from qmf._entry import qpid_stat; sys.exit(qpid_stat())"


class Files:
    """Certificates of a server and a client, in files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority, self.other = trustme.CA(), trustme.CA()
        self.ca = self._write("ca", self.authority.cert_pem)
        self.server = self._write(
            "server", self.authority.issue_cert("localhost", "127.0.0.1").private_key_and_cert_chain_pem
        )
        self.client = self.of("ann")
        self.stranger = self._write(
            "stranger", self.other.issue_cert("x", common_name="eve").private_key_and_cert_chain_pem
        )

    def of(self, name: str) -> Path:
        issued = self.authority.issue_cert(f"{name}@example.org", common_name=name)
        return self._write(name, issued.private_key_and_cert_chain_pem)

    def _write(self, name: str, pem: trustme.Blob) -> Path:
        path = self.folder / name
        pem.write_to_path(str(path))
        return path


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("tls"))


@pytest.fixture
async def broker(files: Files) -> AsyncIterator[Broker]:
    tls = BrokerTls(TlsOptions(cert=files.server, client_ca=files.ca))
    async with Broker(
        port=0,
        ssl_context=tls.context,
        tls_port=0,
        server_certificate=lambda: tls.certificate,
        users={"bob": "secret"},
        certificates=True,
    ) as made:
        yield made


def bus(broker: Broker, files: Files, cert: Path | None = None, user: str | None = None, *mechanisms: str) -> AmqpBus:
    assert broker.tls_url is not None
    return AmqpBus(
        broker.tls_url,
        ssl_context=TlsFiles(ca=files.ca, cert=cert).context(),
        username=user,
        password="secret" if user else None,
        mechanisms=mechanisms or None,
    )


async def test_a_certificate_says_who_the_client_is(
    broker: Broker, files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "qmf.broker")
    client = bus(broker, files, files.client, None, "EXTERNAL", "ANONYMOUS")
    await client.open()
    await client.close()
    with pytest.raises(AuthenticationError, match="PLAIN: a user is needed"):
        await bus(broker, files).open()
    with pytest.raises(ConnectError, match="does not trust the authority"):
        await bus(broker, files, files.stranger, None, "EXTERNAL").open()


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512-PLUS", "SCRAM-SHA-256-PLUS", "SCRAM-SHA-256", "PLAIN"])
async def test_passwords_through_tls(broker: Broker, files: Files, mechanism: str) -> None:
    client = bus(broker, files, None, "bob", mechanism)
    await client.open()
    await client.close()


async def test_both_ports_are_of_one_broker(broker: Broker, files: Files) -> None:
    secure, plain = bus(broker, files, None, "bob"), AmqpBus(broker.url, username="bob", password="secret")
    assert broker.url.startswith("amqp://")
    for client in (secure, plain):
        await client.open()
    assert broker.connections == 2
    for client in (secure, plain):
        await client.close()


async def test_a_certificate_that_is_refused_is_logged(
    broker: Broker, files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "qmf.broker")
    with pytest.raises(ConnectError):
        await bus(broker, files, files.stranger).open()
    assert "a connection is refused by TLS: unable to get local issuer certificate" in caplog.text


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
@pytest.mark.parametrize(
    ("certificate", "alert"),
    [("stranger", "unknown ca"), (None, "(certificate required|handshake failure)")],
    ids=["of another authority", "none"],
)
async def test_a_client_is_told_why_its_certificate_is_refused(
    files: Files, certificate: str | None, alert: str, version: ssl.TLSVersion
) -> None:
    tls = BrokerTls(TlsOptions(cert=files.server, client_ca=files.ca, client_certificate_required=True))
    async with Broker(port=0, ssl_context=tls.context) as broker:
        context = ssl.create_default_context(cafile=files.ca)
        context.maximum_version = version
        if certificate is not None:
            context.load_cert_chain(getattr(files, certificate))

        def connect() -> bytes:
            with (
                socket.create_connection((broker.host, broker.port), timeout=WAIT_LIMIT) as plain,
                context.wrap_socket(plain, server_hostname="127.0.0.1") as secure,
            ):
                secure.sendall(b"AMQP\x03\x01\x00\x00")  # as clients do, who have not read the answer
                return secure.recv(1)

        with pytest.raises(ssl.SSLError, match=f"alert {alert}"):
            await asyncio.to_thread(connect)


@pytest.mark.slow
def test_the_command(files: Files, tmp_path: Path) -> None:
    """A key with a password, clients that need a certificate, and a list of revoked ones."""
    key, password = tmp_path / "key", tmp_path / "password"
    password.write_text("open sesame\n")
    subprocess.run(
        ["openssl", "pkey", "-in", files.server, "-aes256", "-passout", f"file:{password}", "-out", key],
        check=True,
        timeout=WAIT_LIMIT,
    )
    options = [
        *("--tls-cert", files.server, "--tls-key", key, "--ssl-cert-password-file", password, "--ssl-port", "0"),
        *("--tls-client-ca", files.ca, "--ssl-require-client-authentication", "--require-encryption"),
    ]
    with running(*BROKER, "--port", "0", *(str(word) for word in options)) as process:
        match = re.fullmatch(r"Listening on (amqps://127\.0\.0\.1:\d+)", process.wait_for("Listening"))
        assert match is not None
        for cert, code in ((files.client, 0), (None, 1)):
            files_of_client = ["--ssl-certificate", str(cert)] if cert is not None else []
            done = subprocess.run(
                [sys.executable, "-c", STAT, "-b", match[1], "-g", *files_of_client],
                capture_output=True,
                text=True,
                timeout=WAIT_LIMIT,
                env={"SSL_CERT_FILE": str(files.ca)},
                check=False,
            )
            assert done.returncode == code, done.stderr
        assert process.end() == 0


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--tls-key", "x"], "--tls-key needs --tls-cert"),
        (["--tls-client-ca", "x"], "--tls-client-ca needs --tls-cert"),
        (["--tls-port", "0"], "--tls-port needs --tls-cert"),
        (["--tls-cert", "SERVER", "--tls-crl", "CA"], "only with the authorities"),
        (["--tls-cert", "SERVER", "--tls-client-certificate"], "only with the authorities"),
        (["--tls-cert", "SERVER", "--tls-client-ca", "nowhere"], "cannot read the CA file nowhere"),
        (["--tls-cert", "SERVER", "--tls-client-ca", "PASSWORD"], "has nothing in PEM"),
        (["--tls-cert", "SERVER", "--tls-ciphers", "NONSENSE"], "no cipher of OpenSSL"),
        (["--token-keys", "x"], "--token-keys and --token-audience are given together"),
        (["--token-keys", "nowhere", "--token-audience", "x"], "nowhere: No such file"),
        (["--token-keys", "http://x", "--token-audience", "x"], "files and https URLs alone"),
        (["--sasl-mechanisms", "PLAIN,DIGEST-MD5"], "SASL mechanism 'DIGEST-MD5' is not one of"),
    ],
)
def test_options_that_cannot_be_used(
    options: list[str], reason: str, files: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "password").write_text("x")
    names = {"SERVER": files.server, "CA": files.ca, "PASSWORD": tmp_path / "password"}
    assert main(["--port", "0", *(str(names.get(word, word)) for word in options)]) == 2
    message = capsys.readouterr().err
    assert message.startswith("qmf-broker: ")
    assert reason in message


def test_a_password_of_another_key(files: Files, tmp_path: Path) -> None:
    key, wrong = tmp_path / "key", tmp_path / "wrong"
    wrong.write_text("wrong\n")
    subprocess.run(
        ["openssl", "pkey", "-in", files.server, "-aes256", "-passout", "pass:right", "-out", key], check=True
    )
    with pytest.raises(TlsError, match="is encrypted"):
        BrokerTls(TlsOptions(cert=files.server, key=key))
    with pytest.raises(TlsError, match=r"the password in .*wrong is not that of the private key"):
        BrokerTls(TlsOptions(cert=files.server, key=key, key_password=wrong))


def test_the_end_of_a_certificate_is_warned_of(files: Files) -> None:
    tls = BrokerTls(TlsOptions(cert=files.server))
    end = tls.expiry()
    assert end is not None
    assert tls.expiry_warning(end - datetime.timedelta(days=31)) is None
    assert "ends at" in (tls.expiry_warning(end - datetime.timedelta(days=29)) or "")
    assert "ended at" in (tls.expiry_warning(end) or "")


def test_versions(files: Files) -> None:
    assert BrokerTls(TlsOptions(cert=files.server)).context.minimum_version is ssl.TLSVersion.TLSv1_2
    newer = BrokerTls(TlsOptions(cert=files.server, minimum_version="1.3"))
    assert newer.context.minimum_version is ssl.TLSVersion.TLSv1_3


async def test_the_protocol_may_be_named(broker: Broker, files: Files) -> None:
    """Clients that ask for ``amqp`` by ALPN get it, and others are let in all the same."""
    assert broker.tls_url is not None
    port = int(broker.tls_url.rpartition(":")[2])
    for asked, agreed in ((["amqp"], "amqp"), (["h2", "amqp"], "amqp"), ([], None)):
        context = TlsFiles(ca=files.ca).context()
        if asked:
            context.set_alpn_protocols(asked)
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="localhost")
        assert writer.get_extra_info("ssl_object").selected_alpn_protocol() == agreed
        writer.close()
