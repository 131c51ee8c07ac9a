"""Why TLS failed, and what to do: on real sockets, with certificates of an authority of the test's own."""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import trustme

from qmf.broker import Broker
from qmf.bus import AmqpBus
from qmf.bus.client.failures import failure_reason
from qmf.bus.url import parse_url
from qmf.errors import ConnectError

NOW = datetime.now(UTC)
PAST: dict[str, Any] = {"not_before": NOW - timedelta(days=9), "not_after": NOW - timedelta(days=2)}
FUTURE: dict[str, Any] = {"not_before": NOW + timedelta(days=2), "not_after": NOW + timedelta(days=9)}
#: How a connection ends that the peer gives up: it depends on what was still on the way.
ENDED = r"(the broker closed the connection|connection reset by peer)"
NO_TLS = r"the broker does not seem to use TLS on this port: use its port for TLS, or amqp:// .*$"
REFUSED = "^the broker refused the TLS handshake: "
NOT_ACCEPTED = "^the broker's TLS certificate is not accepted: "


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def trusting(authority: trustme.CA) -> ssl.SSLContext:
    """Of a client that trusts the authority alone."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority.configure_trust(context)
    return context


def server(authority: trustme.CA, *names: str, ask: bool = False, **validity: Any) -> ssl.SSLContext:
    """Of a broker; with `ask` it requires a certificate of the client."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*(names or ("127.0.0.1", "localhost")), **validity).configure_cert(context)
    if ask:
        context.verify_mode = ssl.CERT_REQUIRED
        authority.configure_trust(context)
    return context


async def reason(url: str, context: ssl.SSLContext | None = None) -> str:
    """Why `url` could not be connected."""
    bus = AmqpBus(url, ssl_context=context)
    with pytest.raises(ConnectError) as caught:
        await bus.open(30)
    await bus.close()
    assert "\n" not in str(caught.value)
    return caught.value.reason


def check(pattern: str, text: str) -> None:
    assert re.search(pattern, text), text


@contextmanager
def one_connection(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    """A server in a thread that serves one connection, then waits for its client's end; its port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def run() -> None:
            with contextlib.suppress(OSError):
                connection, _ = listening.accept()
                connection.settimeout(30)
                with connection:
                    with contextlib.suppress(OSError):
                        serve(connection)
                    with contextlib.suppress(OSError):
                        connection.shutdown(socket.SHUT_WR)
                    while connection.recv(4096):
                        pass

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        thread.join(30)
        assert not thread.is_alive()


def saying(answer: bytes) -> Callable[[socket.socket], None]:
    """A server that answers with some bytes, whatever it is sent."""
    return lambda connection: connection.sendall(answer)


def handshake(context: ssl.SSLContext) -> Callable[[socket.socket], None]:
    """A server that does the handshake with OpenSSL on the socket itself, and tells the client why it failed."""

    def serve(connection: socket.socket) -> None:
        with context.wrap_socket(connection.dup(), server_side=True) as secured:
            secured.recv(100)

    return serve


async def test_an_unknown_authority(authority: trustme.CA) -> None:
    other = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trustme.CA().configure_trust(other)
    async with Broker(port=0, ssl_context=server(authority)) as broker:
        check(NOT_ACCEPTED + r"its authority is not trusted here: .*\(--ca FILE\)$", await reason(broker.url, other))


@pytest.mark.parametrize(
    ("validity", "expected"),
    [(PAST, "it has expired: renew it at the broker"), (FUTURE, "it is not valid yet: compare the clocks")],
)
async def test_a_certificate_at_the_wrong_time(
    authority: trustme.CA, trusting: ssl.SSLContext, validity: dict[str, Any], expected: str
) -> None:
    async with Broker(port=0, ssl_context=server(authority, **validity)) as broker:
        check(NOT_ACCEPTED + expected, await reason(broker.url, trusting))


@pytest.mark.parametrize(
    ("code", "missing"),
    [(85, "authority key identifier"), (86, "subject key identifier"), (92, "key usage")],
)
def test_extensions_that_newer_versions_of_python_require_are_named(code: int, missing: str) -> None:
    error = ssl.SSLCertVerificationError("certificate verify failed")
    error.verify_code, error.verify_message = code, "not strict enough"
    reason = failure_reason(error, parse_url("amqps://mq1"))
    check(NOT_ACCEPTED + f".* has no {missing}: Python 3.13 and later require it; issue .*docs/brokers.md", reason)


async def test_a_certificate_of_another_host(authority: trustme.CA, trusting: ssl.SSLContext) -> None:
    async with Broker(port=0, ssl_context=server(authority, "mq.example.org")) as broker:
        check(NOT_ACCEPTED + "it is not for the address '127.0.0.1'", await reason(broker.url, trusting))
        url = broker.url.replace("127.0.0.1", "localhost")
        check(NOT_ACCEPTED + "it is for another host name than 'localhost'", await reason(url, trusting))


async def test_plain_to_a_port_for_tls(authority: trustme.CA) -> None:
    context = server(authority)
    async with Broker(port=0, ssl_context=context) as broker:
        check(rf"^{ENDED}; it may require TLS \(amqps://\)$", await reason(f"amqp://127.0.0.1:{broker.port}"))
    # A peer whose answer is a TLS alert.
    with one_connection(saying(b"\x15\x03\x03\x00\x02\x02\x46")) as port:
        check(r"^this port is for TLS: use amqps://", await reason(f"amqp://127.0.0.1:{port}"))
    # OpenSSL's own alert may be overtaken by the end of the connection.
    with one_connection(handshake(context)) as port:
        check(r"TLS.*amqps://", await reason(f"amqp://127.0.0.1:{port}"))


async def test_tls_to_a_plain_port(trusting: ssl.SSLContext) -> None:
    async with Broker(port=0) as broker:
        check(f"{ENDED} during the TLS handshake; {NO_TLS}", await reason(f"amqps://127.0.0.1:{broker.port}", trusting))
    for answer in (b"AMQP\x00\x01\x00\x00", b"HTTP/1.1 400 Bad Request\r\n\r\n"):
        with one_connection(saying(answer)) as port:
            check(f"^TLS handshake failed: {NO_TLS}", await reason(f"amqps://127.0.0.1:{port}", trusting))


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (ssl.TLSVersion.TLSv1_3, r"it requires a certificate of the client \(--cert FILE, --key FILE\)$"),
        (ssl.TLSVersion.TLSv1_2, r"requires a certificate of the client \(--cert FILE, --key FILE\)$"),
    ],
)
async def test_a_broker_that_wants_a_certificate(
    authority: trustme.CA, trusting: ssl.SSLContext, version: ssl.TLSVersion, expected: str
) -> None:
    trusting.maximum_version = version
    with one_connection(handshake(server(authority, ask=True))) as port:
        check(f"{REFUSED}.*{expected}", await reason(f"amqps://127.0.0.1:{port}", trusting))


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (False, "it does not trust the authority of the client's"),
        (True, "the client's certificate has"),
    ],
)
async def test_a_certificate_of_the_client_that_is_refused(
    authority: trustme.CA, trusting: ssl.SSLContext, known: bool, expected: str
) -> None:
    if known:
        authority.issue_cert("ann", **PAST).configure_cert(trusting)
    else:
        trustme.CA().issue_cert("ann").configure_cert(trusting)
    with one_connection(handshake(server(authority, ask=True))) as port:
        check(f"{REFUSED}{expected}", await reason(f"amqps://127.0.0.1:{port}", trusting))


async def test_a_broker_that_gives_up_without_a_word(authority: trustme.CA, trusting: ssl.SSLContext) -> None:
    async with Broker(port=0, ssl_context=server(authority, ask=True)) as broker:
        found = await reason(broker.url, trusting)
    check(r"certificate of the client \(--cert FILE, --key FILE\)$", found)
