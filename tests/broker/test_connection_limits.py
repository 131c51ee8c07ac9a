"""Limits of connections."""

from __future__ import annotations

import pytest

from qmf.broker import Broker
from qmf.broker.connection_limits import ConnectionCounts, ConnectionLimits
from qmf.bus import AmqpBus
from qmf.errors import ConnectError


def test_counts() -> None:
    counts = ConnectionCounts(ConnectionLimits(total=3, per_address=2, per_user=2))
    assert counts.add("a", "ann") == ""
    assert counts.add("b", "ann") == ""
    assert counts.add("c", "ann") == "the limit of 2 connections of user 'ann' is reached"
    assert counts.add("a", "bob") == ""
    assert counts.add("c", "cid") == "the limit of 3 connections is reached"
    counts.remove("b", "ann")
    assert counts.add("a", "cid") == "the limit of 2 connections from a is reached"
    assert counts.add("b", "ann") == ""


def test_no_limits() -> None:
    counts = ConnectionCounts(ConnectionLimits())
    assert {counts.add("a", "ann") for _ in range(100)} == {""}


@pytest.mark.parametrize(
    "limits", [ConnectionLimits(total=1), ConnectionLimits(per_address=1), ConnectionLimits(per_user=1)]
)
async def test_a_client_above_the_limit_is_told(limits: ConnectionLimits) -> None:
    async with Broker(port=0, connection_limits=limits) as broker:
        first = AmqpBus(broker.url)
        await first.open()
        with pytest.raises(ConnectError, match="the limit of 1 connections"):
            await AmqpBus(broker.url).open()
        await first.close()
        third = AmqpBus(broker.url)
        await third.open(30)
        await third.close()
