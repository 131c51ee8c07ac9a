"""GSSAPI with a library that stands in for Kerberos; with a real one, see tests/broker/foreign/test_kerberos.py."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from qmf.sasl.channel import Channel
from qmf.sasl.client import NoMechanism, SaslCredentials, choose_mechanism
from qmf.sasl.gssapi import GssapiClient, GssapiServer, KerberosService
from qmf.sasl.mechanism import SaslError
from qmf.sasl.results import Authenticated, Challenge, Rejected
from qmf.sasl.server import Authenticator


class GssError(Exception):
    """Of the library."""


class Context:
    """One side of a security context: two tokens, and what is wrapped begins with ``w``."""

    initiator_name = "ann@REALM"

    def __init__(self, tokens: Sequence[bytes] = (), expected: Sequence[bytes] = (), **options: object) -> None:
        self.options = options
        self._tokens, self._expected = list(tokens), list(expected)
        self.complete = False

    def step(self, token: bytes | None = None) -> bytes:
        if token is not None and token != self._expected.pop(0):
            raise GssError("defective\n token")
        found = self._tokens.pop(0)
        self.complete = not self._expected
        return found

    def wrap(self, data: bytes, encrypt: bool) -> SimpleNamespace:
        assert not encrypt
        return SimpleNamespace(message=b"w" + data)

    def unwrap(self, data: bytes) -> SimpleNamespace:
        if data[:1] != b"w":
            raise GssError("a bad message")
        return SimpleNamespace(message=data[1:])


def server_context() -> Context:
    return Context([b"reply"], [b"ticket"])


@pytest.fixture(autouse=True)
def library(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    def credentials(*, store: dict[str, str], **options: object) -> object:
        if not Path(store["keytab"]).exists():
            raise GssError("no key")
        return options

    found = SimpleNamespace(
        exceptions=SimpleNamespace(GSSError=GssError),
        Name=lambda name, _: name,
        NameType=SimpleNamespace(hostbased_service=1),
        MechType=SimpleNamespace(kerberos=2),
        RequirementFlag=SimpleNamespace(mutual_authentication=2, integrity=32),
        Credentials=credentials,
        SecurityContext=lambda **options: Context([b"ticket", b""], [b"reply"], **options),
    )
    monkeypatch.setitem(sys.modules, "gssapi", found)
    return found


@pytest.mark.parametrize("user", ["", "ann", "ann@REALM"])
def test_an_exchange(user: str) -> None:
    client, server = GssapiClient("mq.example", user), GssapiServer(server_context)
    assert server.respond(None) == Challenge(b"")
    assert client.respond(b"") == client.initial() == b"ticket"
    assert server.respond(b"ticket") == Challenge(b"reply")
    assert client.respond(b"reply") == b""
    assert server.respond(b"") == Challenge(b"w\x01\0\0\0")
    last = client.respond(b"w\x01\0\0\0")
    assert last == b"w\x01\0\0\0" + user.encode()
    assert server.respond(last) == Authenticated("ann@REALM")
    assert server.claimed_user == "ann@REALM"
    client.finish(None)


def test_a_server_that_has_nothing_to_reply() -> None:
    server = GssapiServer(lambda: Context([b""], [b"ticket"]))
    assert server.respond(b"ticket") == Challenge(b"w\x01\0\0\0")


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ([b"forged"], "GSSAPI: defective token"),
        ([b"ticket", b"", b"plain"], "GSSAPI: a bad message"),
        ([b"ticket", b"", b"w\x02\0\0\0"], "GSSAPI: it chose a security layer, which was not offered"),
        ([b"ticket", b"", b"w"], "GSSAPI: it chose a security layer, which was not offered"),
        ([b"ticket", b"", b"w\x01\0\0\0bob"], "GSSAPI: 'ann@REALM' wants to act for 'bob'"),
    ],
)
def test_clients_that_are_rejected(answers: Sequence[bytes], reason: str) -> None:
    server = GssapiServer(server_context)
    *before, last = answers
    for answer in before:
        assert isinstance(server.respond(answer), Challenge)
    assert server.respond(last) == Rejected(reason)


def test_a_broker_that_is_not_who_it_says() -> None:
    client = GssapiClient("mq.example")
    with pytest.raises(SaslError, match="the broker has not proved who it is"):
        client.finish(None)
    with pytest.raises(SaslError, match="GSSAPI: defective token"):
        client.respond(b"forged")


@pytest.mark.parametrize("offer", [b"w\x06\0\0\0", b"w\x01"])
def test_a_broker_that_insists_on_a_layer(offer: bytes) -> None:
    client = GssapiClient("mq.example")
    client.respond(b"reply")
    with pytest.raises(SaslError, match="insists on a security layer"):
        client.respond(offer)


def test_it_is_used_only_with_a_ticket() -> None:
    with pytest.raises(NoMechanism, match=r"it is used only if it is named \(--sasl-mechanism GSSAPI\)"):
        choose_mechanism(["GSSAPI"], SaslCredentials(), Channel())
    ticket = GssapiClient("mq.example")
    assert choose_mechanism(["PLAIN", "GSSAPI"], SaslCredentials(), Channel(), ["GSSAPI"], ticket) is ticket


def test_a_server_with_a_key_offers_it(tmp_path: Path) -> None:
    keytab = tmp_path / "keytab"
    with pytest.raises(SaslError, match="keytab: GSSAPI: no key"):
        KerberosService(keytab)
    keytab.touch()
    authenticator = Authenticator(kerberos=KerberosService(keytab))
    assert authenticator.needs_login
    assert authenticator.offer(Channel()) == ("GSSAPI",)
    assert isinstance(authenticator.start("GSSAPI", Channel()), GssapiServer)
    assert Authenticator().start("GSSAPI", Channel()) is None


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(SaslError, match=r"GSSAPI needs the library gssapi .*: pip install '.\[gssapi\]'"):
        GssapiClient("mq.example")
