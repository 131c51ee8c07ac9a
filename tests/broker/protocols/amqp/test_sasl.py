"""Users of the broker."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.recording import Inbox, message
from support.waiting import until

from qmf.broker import Broker
from qmf.broker.logins import Logins
from qmf.broker.protocols.amqp.sasl import SaslServer
from qmf.bus import AmqpBus, Binding
from qmf.bus.engine.sasl_frames import (
    OUTCOME_AUTH,
    OUTCOME_OK,
    challenge_frame,
    mechanisms_frame,
    outcome_frame,
    response_frame,
)
from qmf.bus.engine.security_layer import NotAuthenticated
from qmf.codec import Described, Symbol, UInt64
from qmf.codec.amqp10 import encode
from qmf.errors import AuthenticationError, ConnectError
from qmf.sasl.channel import Channel
from qmf.sasl.results import Authenticated, Rejected
from qmf.users.users import Users
from qmf.users.verifiers import hash_password

USERS: Mapping[str, str] = {"guest": "s:cret", "other": "pässword"}
HEADER = b"AMQP\x03\x01\x00\x00"

Compute = Callable[[], Authenticated | Rejected]
Take = Callable[[Authenticated | Rejected], None]


def in_place(compute: Compute, take: Take) -> None:
    take(compute())


class OwnLogins(Logins):
    """Logins whose results are computed as a test says."""

    def __init__(self, users: Mapping[str, str] | None, elsewhere: Callable[[Compute, Take], None] = in_place) -> None:
        super().__init__(None if users is None else Users(users))
        self._elsewhere = elsewhere

    def check_elsewhere(self, compute: Compute, take: Take) -> None:
        self._elsewhere(compute, take)


def server(users: Mapping[str, str] | None, elsewhere: Callable[[Compute, Take], None] = in_place) -> SaslServer:
    """A server for clients on this machine."""
    sasl = SaslServer(OwnLogins(users, elsewhere))
    sasl.channel = Channel(local=True)
    return sasl


def frame(fields: list[object], descriptor: object = UInt64(0x41)) -> bytes:
    body = encode(Described(descriptor, fields))
    return (8 + len(body)).to_bytes(4, "big") + b"\x02\x01\x00\x00" + body


def init(response: bytes | None, mechanism: str = "PLAIN") -> bytes:
    return frame([Symbol(mechanism), response])


@pytest.mark.parametrize("piece", [1, 3, 1000])
@pytest.mark.parametrize(
    ("response", "user"),
    [(b"\0guest\0s:cret", "guest"), (b"guest\0guest\0s:cret", "guest"), ("\0other\0pässword".encode(), "other")],
)
def test_the_right_password_lets_in_and_passes_on_what_follows(piece: int, response: bytes, user: str) -> None:
    sasl = server(USERS)
    data = HEADER + init(response) + b"AMQP\x00\x01\x00\x00"
    rest = b"".join(sasl.feed(data[start : start + piece]) for start in range(0, len(data), piece) if not sasl.user)
    assert sasl.user == user
    assert b"AMQP\x00\x01\x00\x00".startswith(rest)
    output = sasl.output()
    assert output.startswith(HEADER)
    assert b"PLAIN" in output
    assert b"ANONYMOUS" not in output
    assert sasl.output() == b""


@pytest.mark.parametrize(
    "data",
    [
        init(b"\0guest\0wrong"),
        init(b"\0guest\0"),
        init(b"\0nobody\0"),
        init(b"\0nobody\0s:cret"),
        init(b"\0\0"),
        init(b"other\0guest\0s:cret"),
        init(b"guest\0s:cret"),
        init(b"\0guest\0s:cret\0"),
        init(b"\0\xff\0s:cret"),
        init(b"", "ANONYMOUS"),
        init(b"\0guest\0s:cret", "EXTERNAL"),
        frame([]),
    ],
)
def test_wrong_credentials_get_an_answer_and_no_more(data: bytes) -> None:
    sasl = server(USERS)
    sasl.feed(HEADER)
    sasl.output()
    with pytest.raises(NotAuthenticated):
        sasl.feed(data)
    assert sasl.user is None
    assert sasl.output() == outcome_frame(OUTCOME_AUTH)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"AMQP\x00\x01\x00\x00", "does not start with SASL"),
        (b"GET /", "does not start with SASL"),
        (HEADER + b"\x00\x00\x00\x07\x02\x01\x00\x00", "malformed"),
        (HEADER + b"\x00\x01\x00\x01\x02\x01\x00\x00", "malformed"),
        (HEADER + b"\x00\x00\x00\x09\x02\x00\x00\x00\x40", "malformed"),
        (HEADER + b"\x00\x00\x00\x09\x01\x01\x00\x00\x40", "malformed"),
        (HEADER + b"\x00\x00\x00\x09\x02\x01\x00\x00\xff", "malformed"),
        (HEADER + b"\x00\x00\x00\x09\x02\x01\x00\x00\x40", "malformed"),
        (HEADER + frame([], UInt64(0x43)), "unexpected SASL frame"),
    ],
)
def test_what_is_no_sasl_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(NotAuthenticated, match=reason):
        server(USERS).feed(data)


class Elsewhere:
    """What is to be done elsewhere, until the test does it."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Compute, Take]] = []

    def __call__(self, compute: Compute, take: Take) -> None:
        self.waiting.append((compute, take))

    def work(self) -> None:
        for compute, take in self.waiting:
            take(compute())
        self.waiting.clear()


def test_hashes_are_computed_elsewhere() -> None:
    elsewhere = Elsewhere()
    logins = OwnLogins({"ann": hash_password("secret")}, elsewhere)
    sasl = SaslServer(logins)
    sasl.channel = Channel(local=True)
    progress: list[None] = []
    sasl.on_checked = lambda: progress.append(None)
    assert sasl.feed(HEADER + init(b"\0ann\0secret") + b"AMQP") == b""
    sasl.output()
    assert sasl.feed(b"\0\1\0\0") == b""
    assert (sasl.user, sasl.output(), progress) == (None, b"", [])
    elsewhere.work()
    assert len(progress) == 1
    assert sasl.feed(b"") == b"AMQP\0\1\0\0"
    assert (sasl.user, sasl.mechanism) == ("ann", "PLAIN")
    assert sasl.output() == outcome_frame(OUTCOME_OK)
    # What was right once needs no hash.
    again = SaslServer(logins)
    again.channel = Channel(local=True)
    again.feed(HEADER + init(b"\0ann\0secret"))
    assert (again.user, elsewhere.waiting) == ("ann", [])


@pytest.mark.parametrize("response", [b"\0ann\0wrong", b"\0nobody\0secret"])
def test_wrong_passwords_are_refused_after_the_check_elsewhere(response: bytes) -> None:
    elsewhere = Elsewhere()
    sasl = server({"ann": hash_password("secret")}, elsewhere)
    sasl.feed(HEADER + init(response))
    sasl.output()
    elsewhere.work()
    with pytest.raises(NotAuthenticated, match="unknown user or wrong password"):
        sasl.feed(b"")
    assert (sasl.user, sasl.mechanism) == (None, None)
    assert sasl.output() == outcome_frame(OUTCOME_AUTH)


def test_clients_that_do_not_wait_for_the_check_fill_no_memory() -> None:
    sasl = server({"ann": hash_password("secret")}, Elsewhere())
    sasl.feed(HEADER + init(b"\0ann\0secret"))
    sasl.feed(bytes(60_000))
    with pytest.raises(NotAuthenticated, match="without waiting"):
        sasl.feed(bytes(60_000))


def test_the_check_of_a_client_that_is_gone_is_left_out() -> None:
    elsewhere = Elsewhere()
    sasl = server({"ann": hash_password("secret")}, elsewhere)
    sasl.on_checked = lambda: pytest.fail("nobody waits for this")
    sasl.feed(HEADER + init(b"\0ann\0secret"))
    sasl.close()
    elsewhere.work()
    assert sasl.user is None


async def test_a_broker_computes_hashes_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []
    matches = Users.hash_matches

    def noted(self: Users, name: str, password: str) -> bool:
        threads.append(threading.get_ident())
        return matches(self, name, password)

    monkeypatch.setattr(Users, "hash_matches", noted)
    async with Broker(port=0, users={"ann": hash_password("secret")}) as broker:
        good, bad = (f"amqp://ann:{word}@127.0.0.1:{broker.port}" for word in ("secret", "wrong"))
        with pytest.raises(AuthenticationError):
            await AmqpBus(bad).open(30.0)
        for _ in range(2):
            bus = AmqpBus(good)
            await bus.open(30.0)
            assert bus.connected
            await bus.close()
    assert len(threads) == 2
    assert threading.get_ident() not in threads


@given(st.binary(max_size=80), st.booleans())
def test_no_bytes_open_the_door(data: bytes, greeted: bool) -> None:
    sasl = server(USERS)
    try:
        sasl.feed(HEADER + data if greeted else data)
    except NotAuthenticated:
        pass
    else:
        sasl.feed(b"")
    assert sasl.user is None


@pytest.mark.parametrize("piece", [1, 3, 1000])
@pytest.mark.parametrize(
    ("data", "user", "mechanism"),
    [
        (HEADER + init(b"\0guest\0any password"), "guest", "PLAIN"),
        (HEADER + init(b"guest\0guest\0"), "guest", "PLAIN"),
        (HEADER + init(b"me", "ANONYMOUS"), "anonymous", "ANONYMOUS"),
        (HEADER + init(None, "ANONYMOUS"), "anonymous", "ANONYMOUS"),
        (b"", "", None),
    ],
)
def test_without_users_everybody_is_let_in(piece: int, data: bytes, user: str, mechanism: str | None) -> None:
    sasl, rest = server(None), b""
    data += b"AMQP\x00\x01\x00\x00"
    for start in range(0, len(data), piece):
        part = data[start : start + piece]
        rest += sasl.feed(part) if sasl.user is None else part
    assert (sasl.user, sasl.mechanism, rest) == (user, mechanism, b"AMQP\x00\x01\x00\x00")
    output = sasl.output()
    if mechanism is None:
        assert output == b""
    else:
        assert output.startswith(HEADER)
        assert output.startswith(HEADER + mechanisms_frame(["PLAIN", "ANONYMOUS"]))


@pytest.mark.parametrize("data", [init(b"\0\0"), init(b"text"), init(b"other\0guest\0x"), init(b"", "EXTERNAL")])
def test_without_users_a_login_still_has_a_form(data: bytes) -> None:
    sasl = server(None)
    with pytest.raises(NotAuthenticated):
        sasl.feed(HEADER + data)
    assert sasl.output().endswith(outcome_frame(OUTCOME_AUTH))


def test_a_response_may_come_after_a_challenge() -> None:
    sasl = server(USERS)
    sasl.feed(HEADER + init(None))
    assert sasl.output().endswith(challenge_frame(b""))
    sasl.feed(response_frame(b"\0guest\0s:cret"))
    assert (sasl.user, sasl.output()) == ("guest", outcome_frame(OUTCOME_OK))


def test_without_tls_other_machines_are_not_asked_for_passwords() -> None:
    sasl = SaslServer(OwnLogins({"ann": hash_password("secret")}))
    with pytest.raises(NotAuthenticated, match="readable without TLS"):
        sasl.feed(HEADER)
    assert sasl.output() == HEADER + mechanisms_frame([])


async def test_a_broker_without_users_knows_the_names_of_its_clients() -> None:
    async with Broker(port=0) as broker:
        for url in (f"amqp://guest:guest@127.0.0.1:{broker.port}", f"guest/other@127.0.0.1:{broker.port}", broker.url):
            bus = AmqpBus(url)
            await bus.open()
            await bus.send(message("amq.topic", "x", "in"), confirm=True)
            await bus.close()
        assert broker.counters.received == 3


async def test_a_broker_with_users_lets_only_them_in(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "qmf")
    async with Broker(port=0, users=USERS) as broker:
        bus = AmqpBus(f"amqp://guest:s%3Acret@127.0.0.1:{broker.port}")
        inbox = Inbox()
        await bus.open()
        await bus.subscribe(Binding("amq.topic", "#"), inbox)
        await bus.send(message("amq.topic", "x", "in"), confirm=True)
        assert await inbox.wait(1) == ["in"]
        await bus.close()
        for url, reason in (
            (f"amqp://guest:wrong@127.0.0.1:{broker.port}", r"user 'guest' was refused \(SCRAM-SHA-512\)"),
            (broker.url, "the broker offers SASL SCRAM-SHA-512, SCRAM-SHA-256, PLAIN: a user is needed"),
        ):
            bus = AmqpBus(url)
            with pytest.raises(AuthenticationError, match=reason):
                await bus.open()
        with pytest.raises(ConnectError):
            await AmqpBus(broker.url, mechanisms=["EXTERNAL"]).open()
        await until(lambda: broker.connections == 0, "the end of the connections")
        assert broker.counters.failures == 3
    assert "cret" not in caplog.text
    assert "wrong@" not in caplog.text
    (refused,) = [text for text in caplog.messages if "'SCRAM-SHA-512'" in text]
    assert re.fullmatch(
        r"dropped client at 127\.0\.0\.1:\d+: login of user 'guest' by 'SCRAM-SHA-512' refused: "
        r"amqp:unauthorized-access: unknown user or wrong password",
        refused,
    )
