"""Delays after wrong passwords, by a clock of the test; and at a broker."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from qmf.broker.logins import FREE_FAILURES, Logins
from qmf.broker.protocols.amqp.sasl import SaslServer
from qmf.bus.engine.sasl_frames import SASL_HEADER, init_frame
from qmf.bus.engine.security_layer import NotAuthenticated
from qmf.sasl.channel import Channel
from qmf.users.delays import FORGET, MAX_CLIENTS, MAX_DELAY, FailureDelays
from qmf.users.users import Users


class Clock:
    """Time that the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_delays_grow_and_end() -> None:
    clock = Clock()
    delays = FailureDelays(3, clock)
    found = []
    for _ in range(12):
        delays.on_failure("ann", "192.0.2.1")
        found.append(delays.wait("ann", "192.0.2.1"))
        clock.now += found[-1]
        assert delays.wait("ann", "192.0.2.1") == 0
    assert found == [0, 0, 1, 2, 4, 8, 16, 32, MAX_DELAY, MAX_DELAY, MAX_DELAY, MAX_DELAY]
    delays.on_failure("ann", "192.0.2.1")
    assert delays.wait("ann", "192.0.2.1")
    assert not delays.wait("ann", "192.0.2.2")
    assert not delays.wait("bob", "192.0.2.1")
    delays.on_success("ann", "192.0.2.1")
    assert not delays.wait("ann", "192.0.2.1")


def test_old_failures_are_forgotten() -> None:
    clock = Clock()
    delays = FailureDelays(1, clock)
    for _ in range(5):
        delays.on_failure("ann", "a")
    clock.now += MAX_DELAY + FORGET + 1
    delays.on_failure("ann", "a")
    assert delays.wait("ann", "a") == 1


@given(st.lists(st.sampled_from("abc"), max_size=30))
def test_only_the_own_failures_count(tries: list[str]) -> None:
    clock = Clock()
    delays = FailureDelays(2, clock)
    for name in tries:
        delays.on_failure(name, "x")
    for name in "abc":
        assert bool(delays.wait(name, "x")) == (tries.count(name) >= 2)


def test_clients_beyond_those_that_are_remembered() -> None:
    delays = FailureDelays(1, Clock())
    for number in range(MAX_CLIENTS + 1):
        delays.on_failure(str(number), "x")
    assert not delays.wait("0", "x")
    assert delays.wait(str(MAX_CLIENTS), "x")


def tried(delays: FailureDelays, password: str, *, user: str = "bob", host: str = "192.0.2.1") -> str:
    """A login by PLAIN: empty if it succeeds, or why it failed."""
    logins = Logins(Users({"bob": "b", "eve": "b"}))
    logins.failures = delays
    sasl = SaslServer(logins)
    sasl.channel, sasl.host = Channel(local=True), host
    try:
        sasl.feed(SASL_HEADER + init_frame("PLAIN", f"\0{user}\0{password}".encode(), None))
    except NotAuthenticated as error:
        return str(error)
    return "" if sasl.user == user else "not authenticated"


def test_a_broker_delays_logins() -> None:
    clock = Clock()
    delays = FailureDelays(FREE_FAILURES, clock)
    for _ in range(FREE_FAILURES):
        assert tried(delays, "wrong") == "unknown user or wrong password"
    assert tried(delays, "b") == "too soon after wrong passwords of this user from there: 1.0 s are left"
    assert tried(delays, "b", host="192.0.2.2") == ""
    assert tried(delays, "b", user="eve") == ""
    clock.now += 1
    assert tried(delays, "b") == ""
    assert tried(delays, "wrong") == "unknown user or wrong password"  # the earlier ones are forgotten
    assert tried(delays, "b") == ""
