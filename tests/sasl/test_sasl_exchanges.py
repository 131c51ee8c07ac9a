"""Both sides of each mechanism against each other."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.sasl.channel import Channel
from qmf.sasl.client import CLIENT_MECHANISMS, NoMechanism, SaslCredentials, choose_mechanism
from qmf.sasl.mechanism import ClientMechanism, SaslError, ServerMechanism
from qmf.sasl.results import Authenticated, Challenge, Pending, Rejected, Result
from qmf.sasl.server import SERVER_MECHANISMS, Authenticator
from qmf.users.users import Users
from qmf.users.verifiers import hash_password, scram_text

LOCAL, REMOTE = Channel(local=True), Channel()
USERS = {"ann": "pencil", "bob": "s:crét"}


class Vouchers:
    """Vouches for one token."""

    def check_token(self, user: str, token: str) -> Result:
        if token != "eyJ.good.one" or user not in ("", "ann"):
            return Rejected("unknown token")
        return Authenticated("ann", groups=frozenset({"operators"}))


def exchange(client: ClientMechanism, server: ServerMechanism) -> Authenticated | Rejected:
    """What the server finds; the client checks what it gets."""
    result = server.respond(client.initial())
    while isinstance(result, Challenge):
        result = server.respond(client.respond(result.data))
    if isinstance(result, Pending):
        result = result.compute()
    if isinstance(result, Authenticated):
        client.finish(result.data)
    assert not isinstance(result, Challenge | Pending)
    return result


def log_in(
    authenticator: Authenticator,
    credentials: SaslCredentials,
    channel: Channel = LOCAL,
    permitted: Sequence[str] | None = None,
) -> tuple[str, Authenticated | Rejected]:
    """The mechanism that is chosen, and what the server finds."""
    client = choose_mechanism(authenticator.offer(channel), credentials, channel, permitted)
    server = authenticator.start(client.name, channel)
    assert server is not None
    return client.name, exchange(client, server)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes]:
    """Two certificates of servers, as DER."""
    import ssl

    import trustme

    authority = trustme.CA()
    return tuple(
        ssl.PEM_cert_to_DER_cert(authority.issue_cert(name).cert_chain_pems[0].bytes().decode()) for name in ("a", "b")
    )  # type: ignore[return-value]


@pytest.mark.parametrize("text", ["pencil", scram_text("pencil")], ids=["plain", "keys"])
def test_the_strongest_mechanism_is_used(text: str, certificates: tuple[bytes, bytes]) -> None:
    authenticator = Authenticator(Users({"ann": text}))
    secure = Channel(encrypted=True, server_certificate=certificates[0])
    for channel, name in ((LOCAL, "SCRAM-SHA-512"), (REMOTE, "SCRAM-SHA-512"), (secure, "SCRAM-SHA-512-PLUS")):
        used, result = log_in(authenticator, SaslCredentials("ann", "pencil"), channel)
        assert (used, result) == (name, Authenticated("ann", getattr(result, "data", None)))
        _, wrong = log_in(authenticator, SaslCredentials("ann", "pen"), channel)
        assert wrong == Rejected("unknown user or wrong password")
        _, unknown = log_in(authenticator, SaslCredentials("eve", "pencil"), channel)
        assert unknown == Rejected("unknown user or wrong password")


@pytest.mark.parametrize("name", ["SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN"])
@pytest.mark.parametrize("text", ["s:crét", scram_text("s:crét")], ids=["plain", "keys"])
def test_a_mechanism_that_is_named(name: str, text: str) -> None:
    authenticator = Authenticator(Users({"bob": text}))
    used, result = log_in(authenticator, SaslCredentials("bob", "s:crét"), permitted=[name])
    assert used == name
    assert isinstance(result, Authenticated)
    assert result.user == "bob"


def test_hashes_permit_plain_alone() -> None:
    authenticator = Authenticator(Users({"ann": hash_password("pencil"), "bob": "x"}))
    assert authenticator.offer(LOCAL) == ("PLAIN",)
    assert log_in(authenticator, SaslCredentials("ann", "pencil"))[1] == Authenticated("ann")
    # Nobody is asked for a password that others could read.
    assert authenticator.offer(REMOTE) == ()
    assert authenticator.start("PLAIN", REMOTE) is None
    named = Authenticator(Users({"ann": "pencil"}), mechanisms=["plain"])
    assert named.offer(REMOTE) == ("PLAIN",)


def test_somebody_between_both_ends_is_noticed(certificates: tuple[bytes, bytes]) -> None:
    authenticator = Authenticator(Users(USERS))
    seen_by_client, seen_by_server = (
        Channel(encrypted=True, server_certificate=certificate) for certificate in certificates
    )
    client = choose_mechanism(["SCRAM-SHA-256-PLUS"], SaslCredentials("ann", "pencil"), seen_by_client)
    server = authenticator.start(client.name, seen_by_server)
    assert server is not None
    result = exchange(client, server)
    assert isinstance(result, Rejected)
    assert "channel" in result.reason


def test_a_server_that_does_not_know_the_password_is_noticed() -> None:
    client = choose_mechanism(["SCRAM-SHA-256"], SaslCredentials("ann", "pencil"), LOCAL)
    server = Authenticator(Users({"ann": "pencil"})).start("SCRAM-SHA-256", LOCAL)
    assert server is not None
    challenge = server.respond(client.initial())
    assert isinstance(challenge, Challenge)
    client.respond(challenge.data)
    for data in (None, b"v=AAAA", b"e=other-error", b"", b"\xff"):
        with pytest.raises(SaslError, match=r"SCRAM-SHA-256"):
            client.finish(data)


@pytest.mark.parametrize("data", [b"", b"\xff", b"r=x,s=AAAA,i=4096", b"i=1", b"v=x"])
def test_challenges_that_are_malformed(data: bytes) -> None:
    client = choose_mechanism(["SCRAM-SHA-256"], SaslCredentials("ann", "pencil"), LOCAL)
    client.initial()
    with pytest.raises(SaslError):
        client.respond(data)


def test_tokens() -> None:
    authenticator = Authenticator(None, Vouchers())
    assert authenticator.offer(LOCAL) == ("OAUTHBEARER", "PLAIN")
    expected = Authenticated("ann", groups=frozenset({"operators"}))
    assert log_in(authenticator, SaslCredentials(token="eyJ.good.one")) == ("OAUTHBEARER", expected)
    assert log_in(authenticator, SaslCredentials("ann", token="eyJ.good.one", host="mq1")) == ("OAUTHBEARER", expected)
    assert log_in(authenticator, SaslCredentials("ann", "eyJ.good.one")) == ("PLAIN", expected)
    assert log_in(authenticator, SaslCredentials(token="other"))[1] == Rejected("unknown token")
    assert isinstance(log_in(authenticator, SaslCredentials("ann", "pencil"))[1], Rejected)


def test_certificates() -> None:
    authenticator = Authenticator(certificates=True)
    known = Channel(encrypted=True, client_name="bob@acme.com")
    assert authenticator.offer(LOCAL) == ()
    assert authenticator.offer(known) == ("EXTERNAL",)
    used = log_in(authenticator, SaslCredentials(), known, ["EXTERNAL", "ANONYMOUS"])
    assert used == ("EXTERNAL", Authenticated("bob@acme.com"))
    other = log_in(authenticator, SaslCredentials("eve"), known, ["EXTERNAL"])
    assert isinstance(other[1], Rejected)


def test_everybody_is_let_in() -> None:
    authenticator = Authenticator()
    assert not authenticator.needs_login
    assert authenticator.offer(REMOTE) == ("PLAIN", "ANONYMOUS")
    assert log_in(authenticator, SaslCredentials()) == ("ANONYMOUS", Authenticated("anonymous"))
    assert log_in(authenticator, SaslCredentials("bob", "any")) == ("PLAIN", Authenticated("bob"))
    assert Authenticator(mechanisms=["PLAIN"]).needs_login


READABLE = (
    "the broker offers SASL PLAIN, ANONYMOUS: the password could be read: use TLS (amqps://), or permit it by name "
    "(--sasl-mechanism PLAIN) (PLAIN); a user does not become anonymous (ANONYMOUS)"
)


@pytest.mark.parametrize(
    ("offer", "credentials", "channel", "permitted", "reason"),
    [
        ([], SaslCredentials(), LOCAL, None, "the broker offers SASL no mechanism"),
        (["GSSAPI"], SaslCredentials(), LOCAL, None, "the broker offers SASL GSSAPI"),
        (["PLAIN"], SaslCredentials(), LOCAL, None, "the broker offers SASL PLAIN: a user is needed"),
        (["PLAIN", "ANONYMOUS"], SaslCredentials("ann", "x"), REMOTE, None, READABLE),
        (
            ["PLAIN"],
            SaslCredentials("ann", "x"),
            LOCAL,
            ["SCRAM-SHA-256"],
            "the broker offers SASL PLAIN, and only SCRAM-SHA-256 may be used",
        ),
        (["EXTERNAL"], SaslCredentials(), LOCAL, None, "a certificate of the client is needed (--cert FILE)"),
        (["OAUTHBEARER"], SaslCredentials("ann", "x"), LOCAL, None, "OAUTHBEARER: a token is needed"),
        (["SCRAM-SHA-256-PLUS"], SaslCredentials("ann", "x"), LOCAL, None, "SCRAM-SHA-256-PLUS: TLS is needed"),
    ],
)
def test_why_no_mechanism_can_be_used(
    offer: list[str], credentials: SaslCredentials, channel: Channel, permitted: list[str] | None, reason: str
) -> None:
    with pytest.raises(NoMechanism) as caught:
        choose_mechanism(offer, credentials, channel, permitted)
    assert reason in str(caught.value)


def test_a_password_is_in_no_text() -> None:
    assert "pencil" not in repr(SaslCredentials("ann", "pencil", token="pencil"))


def test_both_sides_know_the_same_mechanisms() -> None:
    assert set(CLIENT_MECHANISMS) == set(SERVER_MECHANISMS)


@given(st.sampled_from(SERVER_MECHANISMS), st.lists(st.none() | st.binary(max_size=60), max_size=4))
def test_no_response_opens_the_door(name: str, responses: list[bytes | None]) -> None:
    authenticator = Authenticator(Users(USERS), Vouchers())
    server = authenticator.start(name, LOCAL)
    for response in itertools.takewhile(lambda _: server is not None, responses):
        assert server is not None
        result = server.respond(response)
        result = result.compute() if isinstance(result, Pending) else result
        assert isinstance(result, Challenge | Rejected)
        if isinstance(result, Rejected):
            break
