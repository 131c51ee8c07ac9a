"""TLS and passwords: who is trusted, and what a program learns when it or its broker is not."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from qmf.broker import EmbeddedBroker
from qmf.messaging import AuthenticationFailure, ConnectError, Connection, Empty

TLS = Path(__file__).parents[1] / "tls"
CA, CLIENT = str(TLS / "ca.pem"), str(TLS / "client.pem")


def context(certificate: str, *, ask: bool = False) -> ssl.SSLContext:
    """Of a broker; with `ask` it wants a certificate of the client."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(TLS / f"{certificate}.pem")
    if ask:
        made.verify_mode = ssl.CERT_REQUIRED
        made.load_verify_locations(CA)
    return made


def use(connection: Connection) -> None:
    """Something is sent and received."""
    session = connection.session()
    receiver = session.receiver("#")
    session.sender(receiver.source).send("secret")
    assert receiver.fetch(timeout=10).content == "secret"
    session.acknowledge()
    with pytest.raises(Empty):
        receiver.fetch(timeout=0)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_private_authority(host: str) -> None:
    with EmbeddedBroker(ssl_context=context("server")) as broker:
        url = broker.url.replace("127.0.0.1", host)
        assert url.startswith("amqps://")
        with Connection.establish(url, timeout=10, ssl_trustfile=CA) as connection:
            use(connection)
        plain = url.removeprefix("amqps://")
        with Connection.establish(plain, timeout=10, transport="ssl", ssl_trustfile=CA) as connection:
            use(connection)


def test_a_client_certificate() -> None:
    with EmbeddedBroker(ssl_context=context("server", ask=True)) as broker:
        with Connection.establish(broker.url, timeout=10, ssl_trustfile=CA, ssl_certfile=CLIENT) as connection:
            use(connection)
        with pytest.raises(
            ConnectError,
            match=r"^cannot connect to .*; it may require a certificate of the client \(--cert",
        ):
            Connection.establish(broker.url, timeout=10, ssl_trustfile=CA)


def test_an_authority_that_is_not_trusted() -> None:
    with (
        EmbeddedBroker(ssl_context=context("server")) as broker,
        pytest.raises(ConnectError, match=r"^cannot connect to amqps://127\.0\.0\.1:\d+: .*certificate"),
    ):
        Connection.establish(broker.url, timeout=10)


def test_a_wrong_host_name_is_refused() -> None:
    with EmbeddedBroker(ssl_context=context("elsewhere")) as broker:
        with pytest.raises(ConnectError, match=r"127\.0\.0\.1.*certificate"):
            Connection.establish(broker.url, timeout=10, ssl_trustfile=CA)
        options = {"ssl_trustfile": CA, "ssl_skip_hostname_check": True}
        with Connection.establish(broker.url, timeout=10, **options) as connection:
            use(connection)


def without_tls(url: str) -> str:
    return url.replace("amqps://", "amqp://")


def with_tls(url: str) -> str:
    return url.replace("amqp://", "amqps://")


@pytest.mark.parametrize(
    ("tls", "other", "reason"),
    [(True, without_tls, r"; it may require TLS \(amqps://\)$"), (False, with_tls, r"cannot connect")],
)
def test_tls_on_one_side_only(tls: bool, other: Callable[[str], str], reason: str) -> None:
    with (
        EmbeddedBroker(ssl_context=context("server") if tls else None) as broker,
        pytest.raises(ConnectError, match=reason),
    ):
        Connection.establish(other(broker.url), timeout=10, ssl_trustfile=CA)


@pytest.mark.parametrize("tls", [False, True])
def test_passwords(tls: bool) -> None:
    with EmbeddedBroker(users={"ann": "secret"}, ssl_context=context("server") if tls else None) as broker:
        options = {"ssl_trustfile": CA} if tls else {}
        with Connection.establish(broker.url, timeout=10, username="ann", password="secret", **options) as connection:
            use(connection)
        in_url = broker.url.replace("//", "//ann:secret@")
        with Connection.establish(in_url, timeout=10, **options) as connection:
            use(connection)
            assert "secret" not in repr(connection)
        for given in (
            {},
            {"username": "ann"},
            {"username": "ann", "password": "wrong"},
            {"username": "bob", "password": "secret"},
            {"username": "ann", "password": "secret", "sasl_mechanisms": "ANONYMOUS"},
        ):
            with pytest.raises(AuthenticationFailure, match=r"amqps?://127\.0\.0\.1:\d+") as caught:
                Connection.establish(broker.url, timeout=10, **options, **given)
            assert "\n" not in str(caught.value)
            assert "secret" not in str(caught.value)


def test_a_wrong_password_ends_reconnecting() -> None:
    with (
        EmbeddedBroker(users={"ann": "secret"}) as broker,
        pytest.raises(AuthenticationFailure),
    ):
        Connection.establish(broker.url, timeout=10, username="ann", password="wrong", reconnect=True)
