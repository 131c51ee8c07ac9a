"""Nodes and routing keys, among them those of QMF2.md 2."""

from __future__ import annotations

import pytest

from qmf.protocol import (
    AgentInfo,
    console_key,
    data_key,
    direct_exchange,
    event_key,
    heartbeat_key,
    parse_reply_to,
    topic_exchange,
)
from qmf.schema.model import ClassKey, Kind

QPIDD = AgentInfo(name="apache.org:qpidd:1a8b7fe1", vendor="apache.org", product="qpidd", instance="1a8b7fe1", epoch=1)
EVENT = ClassKey("org.apache.qpid.broker", "queueDeclare", Kind.EVENT)
QUEUE = ClassKey("org.apache.qpid.broker", "queue")


def agent(vendor: str, product: str, instance: str) -> AgentInfo:
    return AgentInfo(name=f"{vendor}:{product}:{instance}", vendor=vendor, product=product, instance=instance)


def test_exchanges_of_a_domain() -> None:
    assert topic_exchange("default") == "qmf.default.topic"
    assert direct_exchange("plant-2") == "qmf.plant-2.direct"


def test_keys_are_those_of_qpidd() -> None:
    assert heartbeat_key(QPIDD) == "agent.ind.heartbeat.apache_org.qpidd.1a8b7fe1"
    assert event_key(EVENT, 6, QPIDD) == (
        "agent.ind.event.org_apache_qpid_broker.queueDeclare.info.apache_org.qpidd.1a8b7fe1"
    )
    assert data_key(QUEUE, QPIDD) == "agent.ind.data.org_apache_qpid_broker.queue.apache_org.qpidd.1a8b7fe1"
    assert console_key("u-1") == "direct-console.u-1"


@pytest.mark.parametrize(
    ("parts", "key"),
    [
        (("v", "p", "i"), "agent.ind.heartbeat.v.p.i"),
        (("v.w", "p.q", "i.j"), "agent.ind.heartbeat.v_w.p_q.i_j"),
        (("v", "p", ""), "agent.ind.heartbeat.v.p"),
        (("v", "", "i"), "agent.ind.heartbeat.v"),
        (("", "p", "i"), "agent.ind.heartbeat"),
        (("a b", "c:d/#*", "i"), "agent.ind.heartbeat.a b.c:d/#*.i"),
    ],
)
def test_only_dots_are_escaped_and_empty_words_end_the_key(parts: tuple[str, str, str], key: str) -> None:
    assert heartbeat_key(agent(*parts)) == key


@pytest.mark.parametrize(
    ("severity", "word"),
    [
        (-1, "emerg"),
        (0, "emerg"),
        (1, "alert"),
        (2, "crit"),
        (3, "error"),
        (4, "warn"),
        (5, "note"),
        (6, "info"),
        (7, "debug"),
        (8, "debug"),
    ],
)
def test_severities_in_keys(severity: int, word: str) -> None:
    assert event_key(EVENT, severity, QPIDD).split(".")[5] == word


def test_an_event_without_schema_has_a_bare_key() -> None:
    assert event_key(None, 3, QPIDD) == "agent.ind.event"


@pytest.mark.parametrize(
    ("reply_to", "parts"),
    [
        ("qmf.default.topic/direct-console.1", ("qmf.default.topic", "direct-console.1")),
        ("exchange/key/with/slashes", ("exchange", "key/with/slashes")),
        ("exchange/", ("exchange", "")),
        ("queue", ("queue", None)),
        ("/queue", ("queue", None)),
        ("/", (None, None)),
        ("", (None, None)),
        (None, (None, None)),
    ],
)
def test_reply_to(reply_to: str | None, parts: tuple[str | None, str | None]) -> None:
    assert parse_reply_to(reply_to) == parts
