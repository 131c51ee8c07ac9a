"""What is kept of sessions over a restart."""

from __future__ import annotations

from pathlib import Path

import pytest
from broker.protocols.mqtt.wire_client import mqtt_broker

from qmf.broker.operations.principal import Principal
from qmf.broker.protocols.mqtt.codec.packets import Will
from qmf.broker.protocols.mqtt.records import SessionRecords, StoredWill


@pytest.mark.parametrize("groups", [(), ("movers", 'a, "b"')], ids=["none", "two"])
async def test_a_will_keeps_the_groups_of_its_client(tmp_path: Path, groups: tuple[str, ...]) -> None:
    principal = Principal("bob", "127.0.0.1:5", "MQTT 5", groups=frozenset(groups))
    stored = StoredWill(Will("wills/bob", b"lost", 1), principal)
    async with mqtt_broker(data_dir=tmp_path) as broker:
        records = SessionRecords(broker.operations)
        records.put_will("bob-1", stored)
        (session,) = records.restore()
        records.remove_will("bob-1")
    assert session.will == stored
