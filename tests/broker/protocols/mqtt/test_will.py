"""Wills and a broker that is killed: who was connected is lost, and so their wills are published when it is back."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from broker.protocols.mqtt.wire_client import connect, mqtt_broker
from broker.visible_broker import VisibleBroker
from support.waiting import until

from qmf.broker.access.control import FileAccessControl
from qmf.broker.protocols.mqtt.codec.packets import Publish, Will
from qmf.broker.protocols.mqtt.codec.properties import PacketProperty
from qmf.messaging import aio
from qmf.messaging.exceptions import UnauthorizedAccess

_P = PacketProperty

pytestmark = pytest.mark.asyncio

USER = (("a", "1"), ("a", "2"))


def wills(broker: VisibleBroker) -> list[str]:
    """The clients whose wills are recorded."""
    queue = broker.registry.queue("mqtt.sessions")
    assert queue is not None
    found = [dict(entry.message.headers) for entry in queue.contents.waiting()]
    return sorted(str(fields["client-id"]) for fields in found if fields["kind"] == "will")


async def test_a_will_is_published_after_a_kill(tmp_path: Path) -> None:
    folder, later = tmp_path / "kept", tmp_path / "copy"
    async with mqtt_broker(data_dir=folder) as broker:
        watcher = await connect(broker, "watcher", expiry=1000)
        await watcher.subscribe("wills/#", qos=2)
        properties = {_P.CONTENT_TYPE: "x", _P.USER_PROPERTY: USER}
        await connect(broker, "with a session", expiry=1000, will=Will("wills/1", b"\0\xff", 1, properties=properties))
        await connect(broker, "without", will=Will("wills/2", b"lost", 2, retain=True))
        left = await connect(broker, "left", expiry=1000, will=Will("wills/3", b"no"))
        await left.disconnect()
        await watcher.subscribe("x")  # is answered when all that was changed before is on the disk
        shutil.copytree(folder, later)  # what a kill would leave at this moment
    async with mqtt_broker(data_dir=later) as broker:
        watcher = await connect(broker, "watcher", clean=False, expiry=1000)
        found = {each.topic: each for each in [await watcher.publication(), await watcher.publication()]}
        assert found["wills/1"] == Publish("wills/1", b"\0\xff", 1, packet_id=1, properties=properties)
        assert (found["wills/2"].payload, found["wills/2"].qos) == (b"lost", 2)
        assert await watcher.nothing_waits()
        await watcher.subscribe("wills/2")
        assert (await watcher.publication()).retain
        assert wills(broker) == []
    async with mqtt_broker(data_dir=later) as broker:
        late = await connect(broker, "late")
        await late.subscribe("wills/#")
        assert await late.payloads(1) == [b"lost"]


async def test_a_will_that_waits_for_its_delay_waits_after_a_restart_too(tmp_path: Path) -> None:
    delayed = Will("wills/1", b"lost", 1, properties={_P.WILL_DELAY: 1000})
    async with mqtt_broker(data_dir=tmp_path) as broker:
        watcher = await connect(broker, "watcher", expiry=1000)
        await watcher.subscribe("wills/#", qos=1)
        for name in ("back", "away"):
            client = await connect(broker, name, expiry=1000, will=delayed)
            client.cut()
    async with mqtt_broker(data_dir=tmp_path) as broker:
        assert wills(broker) == ["away", "back"]
        await connect(broker, "back", clean=False, expiry=1000)
        assert wills(broker) == ["away"]
        watcher = await connect(broker, "watcher", clean=False, expiry=1000)
        assert await watcher.nothing_waits()
        # A new session of the other one ends the old one, and that is the end of the delay.
        await connect(broker, "away", clean=True)
        assert await watcher.payloads(1) == [b"lost"]
        assert wills(broker) == []


async def test_a_will_after_a_kill_has_the_rights_of_its_client(tmp_path: Path) -> None:
    folder, later, file = tmp_path / "kept", tmp_path / "copy", tmp_path / "users.acl"
    file.write_text("acl allow all all\n")
    users = {"ann": "a", "bob": "b"}
    async with mqtt_broker(data_dir=folder, users=users, access=FileAccessControl(file)) as broker:
        watcher = await connect(broker, "watcher", expiry=1000, username="ann", password=b"a")
        await watcher.subscribe("wills/#", qos=1)
        for user in ("ann", "bob"):
            password = user[:1].encode()
            await connect(broker, user, will=Will(f"wills/{user}", b"lost", 1), username=user, password=password)
        shutil.copytree(folder, later)
    file.write_text("acl deny bob@QPID publish exchange name=mqtt\nacl allow all all\n")
    async with mqtt_broker(data_dir=later, users=users, access=FileAccessControl(file)) as broker:
        watcher = await connect(broker, "watcher", clean=False, expiry=1000, username="ann", password=b"a")
        assert (await watcher.publication()).topic == "wills/ann"
        assert await watcher.nothing_waits()


async def test_nobody_writes_a_record_by_which_others_would_publish(tmp_path: Path) -> None:
    """A record of a will names the user with whose rights it is published after a restart."""
    async with mqtt_broker(data_dir=tmp_path) as broker, aio.Connection(broker.url) as connection:
        session = await connection.session()
        with pytest.raises(UnauthorizedAccess, match="only MQTT puts messages into it"):
            await session.sender("mqtt.sessions")
        await connect(broker, "with a will", expiry=1000, will=Will("wills/1", b"lost", 1))
        await until(lambda: wills(broker) == ["with a will"])
