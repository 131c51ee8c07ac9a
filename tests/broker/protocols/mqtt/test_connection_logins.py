"""Who may connect: users and passwords, tokens of SASL mechanisms, TLS; and what the rules allow to whom."""

from __future__ import annotations

from pathlib import Path

import pytest
from broker.protocols.mqtt.wire_client import WireClient, connect, mqtt_broker, open_client

from qmf.broker.access.control import FileAccessControl
from qmf.broker.connection_limits import ConnectionLimits
from qmf.broker.protocols.mqtt.codec.packets import Auth, ConnAck, Connect, Disconnect, Will
from qmf.broker.protocols.mqtt.codec.properties import PacketProperty
from qmf.broker.protocols.mqtt.codec.values import ReasonCode, Version
from qmf.sasl.channel import Channel
from qmf.sasl.scram import ScramClient

_P = PacketProperty
USERS = {"ann": "a", "bob": "b"}

pytestmark = pytest.mark.asyncio


def code(client: WireClient) -> int:
    assert client.connack is not None
    return client.connack.code


async def test_users_log_in_by_passwords() -> None:
    async with mqtt_broker(users=USERS) as broker:
        assert code(await connect(broker, username="ann", password=b"a")) == 0
        assert code(await connect(broker, username="ann", password=b"b")) == ReasonCode.BAD_USER_OR_PASSWORD
        assert code(await connect(broker, username="ann")) == ReasonCode.BAD_USER_OR_PASSWORD
        assert code(await connect(broker)) == ReasonCode.NOT_AUTHORIZED
        assert code(await connect(broker, version=Version.V3, username="ann", password=b"b")) == 4
        assert code(await connect(broker, version=Version.V3)) == 5
        assert broker.counters.failures == 5


async def test_a_session_belongs_to_its_user() -> None:
    async with mqtt_broker(users=USERS) as broker:
        await connect(broker, "x", expiry=100, username="ann", password=b"a")
        refused = await connect(broker, "x", clean=True, username="bob", password=b"b")
        assert code(refused) == ReasonCode.NOT_AUTHORIZED


async def test_a_client_authenticates_itself_by_scram_and_again() -> None:
    async with mqtt_broker(users=USERS) as broker:
        client = await open_client(broker)
        method = {_P.AUTHENTICATION_METHOD: "SCRAM-SHA-256"}
        scram = ScramClient("SCRAM-SHA-256", "ann", "a", Channel())
        client.send(Connect(Version.V5, "x", properties={**method, _P.AUTHENTICATION_DATA: scram.initial()}))
        await prove(client, scram, method)
        packet = await client.receive()
        assert isinstance(packet, ConnAck)
        assert packet.code == 0
        scram.finish(packet.properties[_P.AUTHENTICATION_DATA])
        again = ScramClient("SCRAM-SHA-256", "ann", "a", Channel())
        client.send(Auth(ReasonCode.RE_AUTHENTICATE, {**method, _P.AUTHENTICATION_DATA: again.initial()}))
        await prove(client, again, method)
        confirmed = await client.receive()
        assert isinstance(confirmed, Auth)
        assert confirmed.code == ReasonCode.SUCCESS
        other = ScramClient("SCRAM-SHA-256", "bob", "b", Channel())
        client.send(Auth(ReasonCode.RE_AUTHENTICATE, {**method, _P.AUTHENTICATION_DATA: other.initial()}))
        await prove(client, other, method)
        reason = await client.closed()
        assert reason is not None
        assert reason.code == ReasonCode.NOT_AUTHORIZED


async def prove(client: WireClient, scram: ScramClient, method: dict[PacketProperty, str]) -> None:
    """Answer the challenge of the broker."""
    challenge = await client.receive()
    assert isinstance(challenge, Auth)
    proof = scram.respond(challenge.properties[_P.AUTHENTICATION_DATA])
    client.send(Auth(ReasonCode.CONTINUE_AUTHENTICATION, {**method, _P.AUTHENTICATION_DATA: proof}))


async def test_a_proof_that_is_wrong_ends_the_connection() -> None:
    async with mqtt_broker(users=USERS) as broker:
        client = await open_client(broker)
        method = {_P.AUTHENTICATION_METHOD: "SCRAM-SHA-256"}
        scram = ScramClient("SCRAM-SHA-256", "ann", "wrong", Channel())
        client.send(Connect(Version.V5, "x", properties={**method, _P.AUTHENTICATION_DATA: scram.initial()}))
        await prove(client, scram, method)
        packet = await client.receive()
        assert isinstance(packet, ConnAck)
        assert packet.code == ReasonCode.BAD_USER_OR_PASSWORD
        assert await client.closed() is None


async def test_a_method_that_is_not_offered_is_refused() -> None:
    async with mqtt_broker(users=USERS) as broker:
        client = await connect(broker, properties={_P.AUTHENTICATION_METHOD: "KERBEROS"})
        assert code(client) == ReasonCode.BAD_AUTHENTICATION_METHOD


async def test_there_is_a_limit_of_connections() -> None:
    async with mqtt_broker(connection_limits=ConnectionLimits(total=1)) as broker:
        assert code(await connect(broker)) == 0
        assert code(await connect(broker, "other")) == ReasonCode.QUOTA_EXCEEDED
        assert code(await connect(broker, "other", version=Version.V3)) == 3


async def test_who_does_not_log_in_is_dropped() -> None:
    async with mqtt_broker(open_timeout=0.05) as broker:
        client = await open_client(broker)
        await client.closed()
        assert broker.counters.failures == 1


RULES = """
acl allow ann@QPID access
acl allow ann@QPID create queue name=mqtt/*
acl allow ann@QPID bind exchange name=mqtt routingkey=public/#
acl allow ann@QPID unbind exchange name=mqtt
acl allow ann@QPID consume queue name=mqtt/*
acl allow ann@QPID publish exchange name=mqtt routingkey=public/+/in
acl allow bob@QPID access
acl allow bob@QPID publish exchange name=mqtt routingkey=#
acl deny all all
"""


async def test_rules_decide_what_clients_do(tmp_path: Path) -> None:
    file = tmp_path / "users.acl"
    file.write_text(RULES)
    async with mqtt_broker(users=USERS, access=FileAccessControl(file)) as broker:
        ann = await connect(broker, "ann-1", username="ann", password=b"a")
        assert await ann.subscribe("public/#", "#", qos=1) == (1, ReasonCode.NOT_AUTHORIZED)
        assert await ann.publish("public/x/in", b"1", 1) == 0
        assert await ann.publish("public/x/out", b"1", 1) == ReasonCode.NOT_AUTHORIZED
        assert await ann.publish("public/x/out", b"1", 2) == ReasonCode.NOT_AUTHORIZED
        bob = await connect(broker, "bob-1", username="bob", password=b"b")
        assert await bob.subscribe("public/#") == (ReasonCode.NOT_AUTHORIZED,)
        assert await bob.publish("public/x/out", b"2", 1) == 0
        assert await ann.payloads(2) == [b"1", b"2"]
        denied = await connect(broker, "ann-2", username="ann", password=b"a", will=Will("other", b"x"))
        assert code(denied) == ReasonCode.NOT_AUTHORIZED
        # Clients of 3.1.1 are answered as if nothing were wrong.
        old = await connect(broker, "ann-3", version=Version.V3, username="ann", password=b"a")
        assert await old.publish("public/x/out", b"3", 1) == 0
        assert await ann.nothing_waits()


async def test_other_rules_end_what_they_do_not_allow(tmp_path: Path) -> None:
    file = tmp_path / "users.acl"
    file.write_text("acl allow all all\n")
    access = FileAccessControl(file)
    async with mqtt_broker(users=USERS, access=access) as broker:
        ann = await connect(broker, "ann-1", username="ann", password=b"a")
        await ann.subscribe("secret", qos=1)
        bob = await connect(broker, "bob-1", username="bob", password=b"b")
        file.write_text("acl deny all bind exchange name=mqtt routingkey=secret\nacl allow all all\n")
        access.reload()
        reason = await ann.closed()
        assert reason is not None
        assert reason.code == ReasonCode.NOT_AUTHORIZED
        assert await bob.publish("x", b"", 1) == 0


async def test_a_client_that_takes_its_session_over_counts_once(tmp_path: Path) -> None:
    file = tmp_path / "users.acl"
    file.write_text("acl allow all all\n")
    access, limits = FileAccessControl(file), ConnectionLimits(total=2, per_user=1)
    async with mqtt_broker(users=USERS, connection_limits=limits, access=access) as broker:
        first = await connect(broker, "x", username="ann", password=b"a", expiry=100)
        second = await connect(broker, "x", username="ann", password=b"a", clean=False, expiry=100)
        assert code(second) == 0
        assert second.connack is not None
        assert second.connack.session_present
        assert (await first.closed() or Disconnect()).code == ReasonCode.SESSION_TAKEN_OVER
        # Other clients are refused as before, and have not closed anything.
        assert code(await connect(broker, "y", username="ann", password=b"a")) == ReasonCode.QUOTA_EXCEEDED
        assert code(await connect(broker, "z", username="bob", password=b"b")) == 0
        assert code(await connect(broker, "x", username="bob", password=b"b")) == ReasonCode.QUOTA_EXCEEDED
        # One that may not have its will is refused, and the older one stays, and counts.
        file.write_text("acl deny all publish exchange name=mqtt\nacl allow all all\n")
        access.reload()
        refused = await connect(broker, "x", username="ann", password=b"a", will=Will("a", b"x"))
        assert code(refused) == ReasonCode.NOT_AUTHORIZED
        assert await second.nothing_waits()
        assert code(await connect(broker, "y", username="ann", password=b"a")) == ReasonCode.QUOTA_EXCEEDED
        await second.disconnect()
        assert code(await connect(broker, "y", username="ann", password=b"a")) == 0
