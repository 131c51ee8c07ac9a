"""Hypothesis strategies for packets of both versions."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from qmf.broker.protocols.mqtt.codec.packets import (
    Auth,
    ConnAck,
    Connect,
    Disconnect,
    MessageAnswer,
    Packet,
    Ping,
    Publish,
    SubAck,
    Subscribe,
    SubscriptionRequest,
    UnsubAck,
    Unsubscribe,
    Will,
)
from qmf.broker.protocols.mqtt.codec.properties import ALLOWED, WILL, PacketProperty
from qmf.broker.protocols.mqtt.codec.values import PacketType, ReasonCode, Version

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
binaries = st.binary(max_size=300)
levels = st.text(st.characters(codec="utf-8", exclude_characters="\0+#/"), max_size=6)
topics = st.lists(levels, min_size=1, max_size=4).map("/".join).filter(bool)
filters = (
    st.tuples(st.lists(st.one_of(levels, st.just("+")), min_size=1, max_size=4), st.booleans())
    .map(lambda made: "/".join([*made[0], "#"] if made[1] else made[0]))
    .filter(lambda made: bool(made) and not made.startswith("$share"))
)
ids = st.integers(1, 0xFFFF)

_FLAGS = st.integers(0, 1)
_SHORTS, _LONGS = st.integers(0, 0xFFFF), st.integers(0, 0xFFFFFFFF)
VALUES: dict[PacketProperty, st.SearchStrategy[Any]] = {
    PacketProperty.PAYLOAD_FORMAT: _FLAGS,
    PacketProperty.MESSAGE_EXPIRY: _LONGS,
    PacketProperty.CONTENT_TYPE: texts,
    PacketProperty.RESPONSE_TOPIC: topics,
    PacketProperty.CORRELATION_DATA: binaries,
    PacketProperty.SUBSCRIPTION_ID: st.integers(1, 268_435_455),
    PacketProperty.SESSION_EXPIRY: _LONGS,
    PacketProperty.ASSIGNED_CLIENT_ID: texts,
    PacketProperty.SERVER_KEEP_ALIVE: _SHORTS,
    PacketProperty.AUTHENTICATION_METHOD: texts,
    PacketProperty.AUTHENTICATION_DATA: binaries,
    PacketProperty.REQUEST_PROBLEM_INFORMATION: _FLAGS,
    PacketProperty.WILL_DELAY: _LONGS,
    PacketProperty.REQUEST_RESPONSE_INFORMATION: _FLAGS,
    PacketProperty.RESPONSE_INFORMATION: texts,
    PacketProperty.SERVER_REFERENCE: texts,
    PacketProperty.REASON_STRING: texts,
    PacketProperty.RECEIVE_MAXIMUM: st.integers(1, 0xFFFF),
    PacketProperty.TOPIC_ALIAS_MAXIMUM: _SHORTS,
    PacketProperty.TOPIC_ALIAS: st.integers(1, 0xFFFF),
    PacketProperty.MAXIMUM_QOS: _FLAGS,
    PacketProperty.RETAIN_AVAILABLE: _FLAGS,
    PacketProperty.USER_PROPERTY: st.lists(st.tuples(texts, texts), min_size=1, max_size=3).map(tuple),
    PacketProperty.MAXIMUM_PACKET_SIZE: st.integers(1, 0xFFFFFFFF),
    PacketProperty.WILDCARDS_AVAILABLE: _FLAGS,
    PacketProperty.SUBSCRIPTION_IDS_AVAILABLE: _FLAGS,
    PacketProperty.SHARED_SUBSCRIPTIONS_AVAILABLE: _FLAGS,
}


def properties(packet: int, version: Version) -> st.SearchStrategy[dict[PacketProperty, Any]]:
    if version is Version.V3:
        return st.just({})
    values = {kind: VALUES[kind] for kind in sorted(ALLOWED[packet])}
    if packet == PacketType.PUBLISH:
        values[PacketProperty.SUBSCRIPTION_ID] = st.lists(st.integers(1, 999_999), min_size=1, max_size=3).map(tuple)
    return st.fixed_dictionaries({}, optional=values)


def wills(version: Version) -> st.SearchStrategy[Will]:
    return st.builds(Will, topics, binaries, st.integers(0, 2), st.booleans(), properties(WILL, version))


def connects(version: Version) -> st.SearchStrategy[Connect]:
    return st.builds(
        Connect,
        st.just(version),
        texts,
        st.booleans(),
        _SHORTS,
        st.none() | wills(version),
        st.none() | texts,
        st.none() | binaries,
        properties(PacketType.CONNECT, version),
    ).filter(lambda made: version is Version.V5 or made.username is not None or made.password is None)


@st.composite
def publishes(draw: st.DrawFn, version: Version) -> Publish:
    qos = draw(st.integers(0, 2))
    made = draw(properties(PacketType.PUBLISH, version))
    topic = draw(st.just("") | topics if PacketProperty.TOPIC_ALIAS in made else topics)
    return Publish(
        topic,
        draw(binaries),
        qos,
        draw(st.booleans()),
        bool(qos) and draw(st.booleans()),
        draw(ids) if qos else None,
        made,
    )


def acknowledgements(version: Version) -> st.SearchStrategy[MessageAnswer]:
    codes = st.just(0) if version is Version.V3 else st.sampled_from([0, 0x10, 0x80, 0x87, 0x97])
    of_release = st.just(0) if version is Version.V3 else st.sampled_from([0, 0x92])
    made = []
    for kind in (PacketType.PUBACK, PacketType.PUBREC, PacketType.PUBREL, PacketType.PUBCOMP):
        allowed = codes if kind in (PacketType.PUBACK, PacketType.PUBREC) else of_release
        made.append(st.builds(MessageAnswer, st.just(kind), ids, allowed, properties(kind, version)))
    return st.one_of(made)


def subscribes(version: Version) -> st.SearchStrategy[Subscribe]:
    five = version is Version.V5
    options = st.booleans() if five else st.just(False)
    request = st.builds(
        SubscriptionRequest, filters, st.integers(0, 2), options, options, st.integers(0, 2) if five else st.just(0)
    )
    return st.builds(
        Subscribe,
        ids,
        st.lists(request, min_size=1, max_size=3).map(tuple),
        properties(PacketType.SUBSCRIBE, version),
    )


def packets(version: Version) -> st.SearchStrategy[Packet]:
    five = version is Version.V5
    codes = st.lists(st.sampled_from([0, 1, 2, 0x80]), min_size=1, max_size=3).map(tuple)
    kinds: list[st.SearchStrategy[Packet]] = [
        connects(version),
        publishes(version),
        acknowledgements(version),
        subscribes(version),
        st.builds(ConnAck, st.booleans(), st.integers(0, 5), properties(PacketType.CONNACK, version)),
        st.builds(SubAck, ids, codes, properties(PacketType.SUBACK, version)),
        st.builds(
            Unsubscribe,
            ids,
            st.lists(filters, min_size=1, max_size=3).map(tuple),
            properties(PacketType.UNSUBSCRIBE, version),
        ),
        st.builds(UnsubAck, ids, codes if five else st.just(()), properties(PacketType.UNSUBACK, version)),
        st.builds(Ping, st.sampled_from([PacketType.PINGREQ, PacketType.PINGRESP])),
        st.builds(
            Disconnect,
            st.sampled_from([0, 4, ReasonCode.SESSION_TAKEN_OVER]) if five else st.just(0),
            properties(PacketType.DISCONNECT, version),
        ),
    ]
    if five:
        kinds.append(st.builds(Auth, st.sampled_from([0, 0x18, 0x19]), properties(PacketType.AUTH, version)))
    return st.one_of(kinds)
