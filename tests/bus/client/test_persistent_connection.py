"""A connection with several URLs, and an owner that decides how long is tried."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from support.waiting import until

from qmf.broker import Broker
from qmf.bus.client.failures import NetworkFailure
from qmf.bus.client.network_connection import NetworkConnection
from qmf.bus.client.persistent_connection import PersistentConnection
from qmf.bus.client.settings import client_settings
from qmf.bus.connection_state import BusStateError, ConnectionState
from qmf.bus.url import parse_url

NOBODY = parse_url("127.0.0.1:1")


class Owner:
    """Notes what happens."""

    def __init__(self) -> None:
        self.seen: list[object] = []
        self.final = False
        self.error: Exception | None = None

    async def attach_links(self, network: NetworkConnection) -> None:
        self.seen.append("attach")
        if self.error is not None:
            raise self.error

    def lose(self, failure: NetworkFailure) -> None:
        self.seen.append("lose")

    def on_connected(self, network: NetworkConnection, *, again: bool) -> None:
        self.seen.append(("connected", again))

    def on_disconnected(self, failure: NetworkFailure, wait: float | None) -> None:
        self.seen.append(("disconnected", wait))

    def on_given_up(self, error: Exception) -> None:
        self.seen.append("given up")

    def is_final(self, error: Exception) -> bool:
        return self.final


def connection(owner: Owner, *urls: object, first: int = 1, later: int = 3) -> PersistentConnection:
    """With so many attempts at first, and so many after a loss."""

    def waits(again: bool) -> Iterator[float]:
        return iter([0.01] * (later if again else first))

    return PersistentConnection(
        [parse_url(str(url)) for url in urls],
        owner,
        settings=lambda url: client_settings(url, "test", mechanisms=None, heartbeat=None, properties={}),
        ssl_context=None,
        waits=waits,
        attempt_timeout=5.0,
    )


async def test_each_attempt_tries_all_urls_and_attempts_end() -> None:
    owner = Owner()
    async with Broker(port=0) as broker:
        persistent = connection(owner, NOBODY, broker.url)
        await persistent.open()
        assert persistent.connected
        with pytest.raises(BusStateError):
            await persistent.open()
    await until(lambda: "given up" in owner.seen, "the end of the attempts")
    assert owner.seen == ["attach", ("connected", False), "lose", ("disconnected", 0.01), "given up"]
    assert persistent.state is ConnectionState.DETACHED
    await persistent.close()


async def test_a_detached_connection_is_opened_again_and_a_closed_one_is_not() -> None:
    owner = Owner()
    async with Broker(port=0) as broker:
        persistent = connection(owner, NOBODY, broker.url)
        await persistent.open()
        await persistent.detach()
        assert persistent.state is ConnectionState.DETACHED
        await persistent.open()
        await persistent.close()
        with pytest.raises(BusStateError):
            await persistent.open()
    assert owner.seen == ["attach", ("connected", False), "lose"] * 2


@pytest.mark.parametrize("final", [False, True])
async def test_an_error_of_the_owner_fails_the_attempt(final: bool) -> None:
    owner = Owner()
    owner.error = ValueError("no links")
    async with Broker(port=0) as broker:
        persistent = connection(owner, broker.url, first=2)
        owner.final = final
        with pytest.raises(ValueError, match="no links"):
            await persistent.open()
        assert owner.seen == ["attach", "lose"] * (1 if final else 2)
        assert persistent.state is ConnectionState.NEW
        owner.error = None
        await persistent.open()
        await persistent.close()


async def test_closing_ends_attempts_under_way() -> None:
    persistent = connection(Owner(), NOBODY, first=1000)
    opening = asyncio.create_task(persistent.open())
    await until(lambda: persistent.failure is not None, "a failed attempt")
    await persistent.close()
    with pytest.raises(NetworkFailure, match="closed while connecting"):
        await opening
