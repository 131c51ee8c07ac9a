"""Our client logs in to a real qpidd, whose SASL is Cyrus'.

``QMF_TEST_QPIDD_SASL`` is the command that runs a qpidd with authentication in the foreground, with ``{port}`` and
``{config}`` for port and the folder of SASL's configuration. Users are made with ``saslpasswd2``.
"""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
import trustme
from support.nss import NAME, needs_nss, nss_database
from support.waiting import until, wait_until

from qmf.bus import AmqpBus
from qmf.connecting.tls import TlsFiles
from qmf.console.aio import Client
from qmf.errors import AuthenticationError, ConnectError
from qmf.messaging import aio
from qmf.messaging.exceptions import MessagingError
from qmf.messaging.message import Message

COMMAND = os.environ.get("QMF_TEST_QPIDD_SASL", "")
MECHANISMS = ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN", "ANONYMOUS")
#: Characters of a password that need care in some mechanism.
PASSWORD = "pá=ss, wörd/@:"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A qpidd with the users bob and eve."""
    if not COMMAND:
        pytest.skip("QMF_TEST_QPIDD_SASL names no qpidd")
    if shutil.which("saslpasswd2", path=f"{os.environ['PATH']}:/usr/sbin") is None:
        pytest.skip("saslpasswd2 is not installed")
    folder: Path = tmp_path_factory.mktemp("sasl")
    for user, password in (("bob", PASSWORD), ("eve", "e")):
        command = ["saslpasswd2", "-p", "-c", "-f", str(folder / "users"), "-u", "QPID", user]
        path = f"{os.environ['PATH']}:/usr/sbin"
        subprocess.run(command, input=password.encode(), check=True, env={**os.environ, "PATH": path})
    (folder / "qpidd.conf").write_text(
        f"pwcheck_method: auxprop\nauxprop_plugin: sasldb\nsasldb_path: {folder / 'users'}\n"
        f"mech_list: {' '.join(MECHANISMS)}\n"
    )
    port = _free_port()
    process = subprocess.Popen(shlex.split(COMMAND.format(port=port, config=folder)), stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: process.poll() is not None or _listens(port))
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [None, *MECHANISMS[:3]], ids=lambda name: name or "the strongest")
async def test_a_right_password(url: str, mechanism: str | None) -> None:
    mechanisms = None if mechanism is None else [mechanism]
    bus = AmqpBus(url, username="bob", password=PASSWORD, mechanisms=mechanisms)
    await bus.open()
    assert bus.connected
    await bus.close()


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", MECHANISMS[:3])
@pytest.mark.parametrize(("user", "password"), [("bob", "e"), ("nobody", "e")])
async def test_a_wrong_password(url: str, mechanism: str, user: str, password: str) -> None:
    with pytest.raises(AuthenticationError, match=f"user '{user}' was refused"):
        await AmqpBus(url, username=user, password=password, mechanisms=[mechanism]).open()


@pytest.mark.slow
async def test_a_mechanism_that_is_not_offered(url: str) -> None:
    with pytest.raises(AuthenticationError, match=r"the broker offers SASL .*, and only SCRAM-SHA-1 may be used"):
        await AmqpBus(url, username="bob", password=PASSWORD, mechanisms=["SCRAM-SHA-1"]).open()
    bus = AmqpBus(url)
    await bus.open()  # by ANONYMOUS
    await bus.close()


@pytest.mark.slow
async def test_the_user_of_a_message(url: str) -> None:
    """qpidd takes the name of the user who has logged in, which consoles send, and no other."""
    async with Client(f"amqp://bob:{quote(PASSWORD, safe='')}@{url}", settle=0.0) as client:
        await client.locate(settle=0.0)
        await until(lambda: client.agents, "qpidd's agent")
        assert len(await client.objects("broker", package="org.apache.qpid.broker")) == 1
    connection = aio.Connection(url, username="bob", password=PASSWORD)
    await connection.open()
    sender = await (await connection.session()).sender("amq.topic")
    await sender.send(Message("x", user_id="bob"), sync=True)
    with pytest.raises(MessagingError, match="user id in message declared as eve"):
        await sender.send(Message("x", user_id="eve"), sync=True)
    await connection.close()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of qpidd's TLS, with an authority and certificates of a broker and of bob."""
    if not COMMAND:
        pytest.skip("QMF_TEST_QPIDD_SASL names no qpidd")
    needs_nss()
    authority = trustme.CA()
    folder = nss_database(tmp_path_factory.mktemp("certificates"), authority)
    issued = authority.issue_cert("bob@example.org", common_name="bob")
    issued.private_key_and_cert_chain_pem.write_to_path(str(folder / "bob"))
    return folder


@pytest.mark.slow
async def test_a_certificate(certificates: Path) -> None:
    """qpidd's name for the user of a certificate is its common name, with its realm."""
    (certificates / "qpidd.conf").write_text("mech_list: EXTERNAL\n")
    port, tls_port = _free_port(), _free_port()
    words = shlex.split(COMMAND.format(port=port, config=certificates))
    words += ["--ssl-port", str(tls_port), "--ssl-cert-db", str(certificates), "--ssl-cert-name", NAME]
    words += ["--ssl-cert-password-file", str(certificates / "password"), "--ssl-require-client-authentication"]
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: process.poll() is not None or _listens(tls_port))
        url, files = f"amqps://127.0.0.1:{tls_port}", certificates
        async with Client(
            AmqpBus(url, ssl_context=context(files, "bob"), mechanisms=["EXTERNAL"]), settle=0.0
        ) as client:
            await client.locate(settle=0.0)
            await until(lambda: client.agents, "qpidd's agent")
            connections = await client.objects("connection", package="org.apache.qpid.broker")
            assert {(item.authIdentity, item.saslMechanism) for item in connections} == {("bob@QPID", "EXTERNAL")}
        with pytest.raises(ConnectError):
            await AmqpBus(url, ssl_context=context(files)).open()
    finally:
        process.terminate()
        process.wait()


def context(files: Path, name: str | None = None) -> ssl.SSLContext:
    return TlsFiles(ca=files / "ca", cert=None if name is None else files / name).context()
