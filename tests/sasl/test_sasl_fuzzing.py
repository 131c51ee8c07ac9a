"""Messages of strangers to both sides of SASL: each mechanism refuses what it cannot use, and raises nothing else."""

from __future__ import annotations

import itertools
import ssl
from collections.abc import Callable, Sequence

import pytest
import trustme
from support.fuzzing import FEW, MANY, try_all

from qmf.sasl.channel import Channel
from qmf.sasl.client import SaslCredentials, choose_mechanism
from qmf.sasl.mechanism import SaslError
from qmf.sasl.results import Authenticated, Challenge, Pending, Rejected
from qmf.sasl.server import SERVER_MECHANISMS, Authenticator
from qmf.users.users import Users
from qmf.users.verifiers import UsersError, parse_verifier, scram_text

_PEM = trustme.CA().issue_cert("localhost").cert_chain_pems[0].bytes().decode()
CHANNEL = Channel(local=True, client_name="bob", server_certificate=ssl.PEM_cert_to_DER_cert(_PEM))


class Tokens:
    """Vouches for nobody."""

    def check_token(self, user: str, token: str) -> Rejected:
        return Rejected(f"{len(user)} {len(token)}")


AUTHENTICATOR = Authenticator(Users({"bob": "b"}), Tokens(), certificates=True)

FIRST: Sequence[bytes] = (
    b"\0bob\0b",
    b"bob\0bob\0b",
    b"n,,n=bob,r=fyko+d2lbbFgONRv9qkxdawL",
    b"p=tls-server-end-point,,n=bob,r=fyko+d2lbbFgONRv9qkxdawL",
    b"y,a=bob,n=bob,r=x",
    b"n,a=bob,\x01host=localhost\x01auth=Bearer eyJ.a.b\x01\x01",
    b"bob",
    b"",
)
NEXT: Sequence[bytes] = (
    b"c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
    b"r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096",
    b"v=rmF9pqV8S7suAoZWja4dJRkFsKQ=",
    b"e=invalid-proof",
    b"{}",
    b"\x01",
)


#: Each input goes to the next mechanism.
OFFERED = itertools.cycle([name for name in SERVER_MECHANISMS if AUTHENTICATOR.start(name, CHANNEL) is not None])
CHOSEN = itertools.cycle(["SCRAM-SHA-256", "SCRAM-SHA-512-PLUS", "PLAIN", "OAUTHBEARER"])


def server_reads(data: bytes) -> None:
    exchange = AUTHENTICATOR.start(next(OFFERED), CHANNEL)
    assert exchange is not None
    for message in (data, data[::-1], data):
        result = exchange.respond(message)
        if isinstance(result, Pending):
            result = result.compute()
        assert isinstance(result, Challenge | Authenticated | Rejected)
        if not isinstance(result, Challenge):
            break
    assert isinstance(exchange.claimed_user, str)


def client_reads(data: bytes) -> None:
    name = next(CHOSEN)
    client = choose_mechanism([name], SaslCredentials("bob", "b", "eyJ.a.b"), CHANNEL, [name])
    client.initial()
    try:
        client.respond(data)
        client.finish(data)
    except SaslError as error:
        str(error)  # must not fail either


def verifier_reads(data: bytes) -> None:
    try:
        parse_verifier(data.decode("utf-8", "replace"))
    except UsersError as error:
        str(error)


VERIFIERS = (scram_text("b").encode(), b"$scrypt$ln=14,r=8,p=1$c2FsdHNhbHRzYWx0$aGFzaGhhc2hoYXNoaGFzaGhhc2g", b"!plain")
READERS: dict[str, tuple[Callable[[bytes], None], Sequence[bytes]]] = {
    "server": (server_reads, (*FIRST, *NEXT)),
    "client": (client_reads, NEXT),
    "verifier": (verifier_reads, VERIFIERS),
}


@pytest.mark.parametrize("reader", READERS)
def test_changed_messages(reader: str) -> None:
    read, valid = READERS[reader]
    assert try_all(read, valid, FEW) == FEW


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("reader", READERS)
def test_many_changed_messages(reader: str) -> None:
    read, valid = READERS[reader]
    assert try_all(read, valid, MANY) == MANY
