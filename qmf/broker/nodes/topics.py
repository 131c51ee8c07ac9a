"""Topics: names for exchanges, with settings for the queues of their subscribers; and policies, by which nodes are
created when a client uses an address that matches a pattern.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Collection, Mapping
from typing import Any, Protocol

import attrs

from qmf.broker.nodes.exchanges import DefaultExchange, Exchange
from qmf.broker.nodes.node_declaration import NodeDeclaration, read_node_declaration
from qmf.broker.nodes.router import Node
from qmf.broker.nodes.settings import QueueLimits, QueueSettings

_EXCHANGE_ARGUMENTS = ("qpid.ive", "qpid.msg_sequence")
_LIMITS = ("qpid.max_count", "qpid.max_size", "qpid.policy_type", "qpid.paging")


class TopicError(Exception):
    """A topic or a policy cannot be created or deleted; says why."""


class PolicyKind(enum.Enum):
    """What a policy creates; the value is qpidd's name for such policies."""

    QUEUE = "QueuePolicy"
    TOPIC = "TopicPolicy"


@attrs.frozen(eq=False)
class Topic:
    """A name for an exchange.

    Attributes:
        name: the address.
        exchange: that routes its messages.
        durable: it is there again after a restart.
        properties: settings of the queues of its subscribers, as given.
        settings: the same, read.
    """

    name: str
    exchange: Exchange
    durable: bool
    properties: Mapping[str, object]
    settings: QueueSettings

    @property
    def has_limits(self) -> bool:
        """The settings say how much a queue may hold; otherwise it holds as much as that of any subscription."""
        return any(name in self.properties for name in _LIMITS)


@attrs.frozen(eq=False)
class NodePolicy:
    """What is created when a client uses an address that a pattern matches.

    Attributes:
        kind: a queue, or an exchange with a topic.
        pattern: a regular expression; it may match any part of an address, as with qpidd.
        durable: the policy is there again after a restart, and what it creates is durable.
        properties: as given.
        declaration: of the node.
        topic: of a topic: settings of the queues of its subscribers.
    """

    kind: PolicyKind
    pattern: str
    durable: bool
    properties: Mapping[str, object]
    declaration: NodeDeclaration
    topic: Mapping[str, object]


class TopicObserver(Protocol):
    """Learns of topics and policies."""

    def on_topic_declared(self, topic: Topic) -> None:
        """A topic was created."""

    def on_topic_deleted(self, topic: Topic) -> None:
        """A topic is about to be deleted."""

    def on_policy_declared(self, policy: NodePolicy) -> None:
        """A policy was created."""

    def on_policy_deleted(self, policy: NodePolicy) -> None:
        """A policy is about to be deleted."""


class Nodes(Protocol):
    """What topics need of the registry."""

    @property
    def limits(self) -> QueueLimits:
        """Of queues that ask for none."""

    @property
    def observer(self) -> TopicObserver:
        """Is notified."""

    def exchange(self, name: str) -> Exchange | DefaultExchange | None:
        """The exchange of a name."""

    def is_predeclared(self, exchange: Exchange | DefaultExchange) -> bool:
        """An exchange that exists from the start."""

    def create(self, name: str, declaration: NodeDeclaration, client: Any = None) -> Node:
        """Create a queue or an exchange."""

    def warn_durable(self, what: str) -> None:
        """Something durable is created, which a broker without a store cannot keep."""


class Topics:
    """The topics and policies of a broker."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._topics: dict[str, Topic] = {}
        self._policies: dict[str, NodePolicy] = {}

    @property
    def topics(self) -> Collection[Topic]:
        """All topics."""
        return self._topics.values()

    @property
    def policies(self) -> Collection[NodePolicy]:
        """All policies."""
        return self._policies.values()

    def get(self, name: str | None) -> Topic | None:
        """The topic of a name."""
        return None if name is None else self._topics.get(name)

    def create_topic(self, name: str, properties: Mapping[str, object], *, strict: bool = False) -> Topic:
        """Create a topic.

        Args:
            properties: ``exchange``, ``durable``, and settings of queues.
            strict: refuse unknown settings.

        Raises:
            TopicError: there is a topic of that name, or no such exchange.
            NodeDeclarationError: a setting is wrong.
        """
        exchange_name = properties.get("exchange") or ""
        exchange = self._nodes.exchange(str(exchange_name))
        if not exchange_name:
            raise TopicError("Exchange must be specified.")
        if not isinstance(exchange, Exchange):
            raise TopicError(f"not-found: Exchange not found: {exchange_name}")
        if name in self._topics:
            raise TopicError(f"A topic named {name} already exists")
        kept = {key: value for key, value in properties.items() if key != "exchange"}
        settings = read_node_declaration(("queue",), kept, strict=strict, limits=self._nodes.limits).queue
        if settings.durable and not (exchange.settings.durable or self._nodes.is_predeclared(exchange)):
            raise TopicError("Durable topic must be backed by durable exchange")
        if settings.durable:
            self._nodes.warn_durable(f"topic {name}")
        kept.pop("durable", None)
        topic = Topic(name, exchange, settings.durable, kept, attrs.evolve(settings, durable=False))
        self._topics[name] = topic
        self._nodes.observer.on_topic_declared(topic)
        return topic

    def delete_topic(self, name: str) -> bool:
        """Delete a topic; its exchange stays. False if there is none."""
        topic = self._topics.get(name)
        if topic is None:
            return False
        self._nodes.observer.on_topic_deleted(topic)
        del self._topics[name]
        return True

    def on_exchange_deleted(self, exchange: Exchange) -> None:
        """An exchange is deleted: so are its topics."""
        for topic in [item for item in self._topics.values() if item.exchange is exchange]:
            self.delete_topic(topic.name)

    def create_policy(
        self, kind: PolicyKind, pattern: str, properties: Mapping[str, object], *, strict: bool = False
    ) -> NodePolicy:
        """Create a policy; a queue of one that is not durable is deleted when it is unused and empty, unless the
        properties say something else, and an exchange with its last binding.

        Raises:
            TopicError: there is one with this pattern, or it is no regular expression.
            NodeDeclarationError: a property is wrong.
        """
        existing = self._policies.get(pattern)
        if existing is not None:
            if existing.kind is kind:
                raise TopicError(f"An object of type {kind.value} with key {pattern} already exists")
            raise TopicError(
                f"Cannot create object of type {kind.value} with key {pattern} as an object of type "
                f"{existing.kind.value} already exists with the same key"
            )
        try:
            re.compile(pattern)
        except re.error as error:
            raise TopicError(f"invalid-argument: {pattern!r} is no regular expression: {error}") from error
        wanted = dict(properties)
        limits = self._nodes.limits
        topic: dict[str, object] = {}
        if kind is PolicyKind.QUEUE:
            declaration = read_node_declaration(("queue",), wanted, strict=strict, limits=limits)
            if not declaration.durable and not {"qpid.lifetime-policy", "auto-delete"} & wanted.keys():
                wanted["qpid.lifetime-policy"] = "delete-if-unused-and-empty"
                declaration = read_node_declaration(("queue",), wanted, limits=limits)
        else:
            own = ("durable", "alternate-exchange", "exchange-type", "auto-delete", *_EXCHANGE_ARGUMENTS)
            topic = {key: value for key, value in wanted.items() if key not in own}
            lifetime = topic.pop("qpid.lifetime-policy", None)
            node = {key: value for key, value in wanted.items() if key in own}
            declaration = read_node_declaration(("topic",), node, strict=strict, limits=limits)
            read_node_declaration(("queue",), topic, strict=strict, limits=limits)
            exchange = declaration.exchange
            assert exchange is not None
            auto_delete = exchange.auto_delete if "auto-delete" in node else not exchange.durable
            if lifetime is not None:
                auto_delete = lifetime != "manual"
            declaration = attrs.evolve(declaration, exchange=attrs.evolve(exchange, auto_delete=auto_delete))
        if declaration.durable:
            self._nodes.warn_durable(f"{kind.value} {pattern}")
        policy = NodePolicy(kind, pattern, declaration.durable, dict(properties), declaration, topic)
        self._policies[pattern] = policy
        self._nodes.observer.on_policy_declared(policy)
        return policy

    def delete_policy(self, kind: PolicyKind, pattern: str) -> None:
        """Delete a policy; what it has created stays.

        Raises:
            TopicError: there is none.
        """
        policy = self._policies.get(pattern)
        if policy is None:
            raise TopicError(f"not-found: no {kind.value} has the pattern {pattern}")
        if policy.kind is not kind:
            raise TopicError(f"Object with key {pattern} is of type {policy.kind.value} not {kind.value}")
        self._nodes.observer.on_policy_deleted(policy)
        del self._policies[pattern]

    def policy_for(self, address: str) -> NodePolicy | None:
        """The policy that creates a node of an address: that with the longest pattern. None without any."""
        matching = [policy for policy in self._policies.values() if re.search(policy.pattern, address)]
        return max(matching, key=lambda item: len(item.pattern), default=None)

    def create_by_policy(self, address: str, client: Any) -> Node | None:
        """Create the node that `policy_for` has for an address. None without any.

        Raises:
            NameInUse, NoSuchExchange, NodeDeclarationError: as of `NodeRegistry.create`.
        """
        policy = self.policy_for(address)
        if policy is None:
            return None
        node = self._nodes.create(address, policy.declaration, client)
        if policy.kind is PolicyKind.TOPIC and address not in self._topics:
            self.create_topic(address, {**policy.topic, "exchange": address, "durable": policy.durable})
        return node
