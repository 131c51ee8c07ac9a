"""Nodes and routing keys of the QMF bus (QMF2.md 1, 2).

Keys are made in qpidd's form: dots inside a component become underscores, and events carry severity and agent. Peers
disagree about keys, so never parse one: the message's content has all of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from qmf.protocol.values import AgentInfo
from qmf.schema.model import ClassKey

#: Exchange of QMFv1 requests and broadcasts, and the one where qpidd sends most QMFv1 answers (QMF2.md 8.3).
V1_EXCHANGE = "qpid.management"
AMQ_DIRECT = "amq.direct"

#: Key of locate requests to all agents, on the topic exchange.
LOCATE_KEY = "console.request.agent_locate"

#: Key and alias of the agent inside the connected broker.
BROKER = "broker"

# What an agent binds on the topic exchange to hear consoles.
CONSOLE_BINDING = "console.#"

# What a console binds on the topic exchange.
HEARTBEAT_BINDING = "agent.ind.heartbeat.#"
EVENT_BINDING = "agent.ind.event.#"
DATA_BINDING = "agent.ind.data.#"

#: Names of severities 0 to 7 in keys; not all are those of the XML.
_SEVERITIES = ("emerg", "alert", "crit", "error", "warn", "note", "info", "debug")


def topic_exchange(domain: str) -> str:
    """Exchange of indications and of requests to all agents."""
    return f"qmf.{domain}.topic"


def direct_exchange(domain: str) -> str:
    """Exchange of requests to one agent."""
    return f"qmf.{domain}.direct"


def console_key(unique: str) -> str:
    """Key under which a console receives answers on the topic exchange (QMF2.md 1.3); `unique` is a uuid's text."""
    return f"direct-console.{unique}"


def heartbeat_key(agent: AgentInfo) -> str:
    """Key of an agent's heartbeats."""
    return ".".join(("agent.ind.heartbeat", *_agent_parts(agent)))


def event_key(class_key: ClassKey | None, severity: int, agent: AgentInfo) -> str:
    """Key of an event; bare for an event without schema. A severity out of 0 to 7 counts as the nearest."""
    if class_key is None:
        return "agent.ind.event"
    severity_name = _SEVERITIES[min(max(severity, 0), 7)]
    return ".".join(("agent.ind.event", *_class_parts(class_key), severity_name, *_agent_parts(agent)))


def data_key(class_key: ClassKey, agent: AgentInfo) -> str:
    """Key of indications of changed objects of a class."""
    return ".".join(("agent.ind.data", *_class_parts(class_key), *_agent_parts(agent)))


def parse_reply_to(reply_to: str | None) -> tuple[str | None, str | None]:
    """Where an answer goes.

    Args:
        reply_to: ``exchange/key``, or the name of a queue with or without a slash before it.

    Returns:
        `to` and `subject` of the answer; no subject for a queue, and (None, None) where there is nowhere to answer to.
    """
    if not reply_to:
        return None, None
    exchange, slash, key = reply_to.partition("/")
    if not exchange:
        return key or None, None
    return exchange, key if slash else None


def _escape(part: str) -> str:
    return part.replace(".", "_")


def _class_parts(key: ClassKey) -> tuple[str, str]:
    return _escape(key.package), _escape(key.name)


def _agent_parts(agent: AgentInfo) -> Iterator[str]:
    """Vendor, product and instance, up to the first that is empty: an empty part would shift the others."""
    for part in (agent.vendor, agent.product, agent.instance):
        if not part:
            return
        yield _escape(part)
