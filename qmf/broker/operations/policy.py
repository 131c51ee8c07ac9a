"""Who may do what: the questions that a policy answers, in the words of qpidd's ACL files where these have any."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Set
from typing import Protocol

import attrs

from qmf.broker.operations.principal import Principal


class Action(enum.Enum):
    """What is done."""

    ACCESS = "access"  #: a node is named: in a link, a message or a method; or management is used
    CREATE = "create"
    DELETE = "delete"
    BIND = "bind"
    UNBIND = "unbind"
    PUBLISH = "publish"
    CONSUME = "consume"
    BROWSE = "browse"  #: the messages stay in the queue; ACL files have no word of their own for it
    PURGE = "purge"
    MOVE = "move"
    REROUTE = "reroute"
    REDIRECT = "redirect"
    UPDATE = "update"


class ObjectType(enum.Enum):
    """What it is done to."""

    BROKER = "broker"
    CONNECTION = "connection"
    METHOD = "method"  #: of a managed object
    QUERY = "query"  #: for managed objects
    EXCHANGE = "exchange"
    QUEUE = "queue"
    LINK = "link"  #: to another broker, or the domain that this is
    TOPIC = "topic"  #: a name of an exchange, and policies by which nodes are created; unknown to ACL files
    QUEUE_POLICY = "QueuePolicy"
    TOPIC_POLICY = "TopicPolicy"


@attrs.frozen
class Operation:
    """What somebody wants to do.

    Attributes:
        action: what.
        object_type: to what.
        name: of the object; empty for the default exchange, and for what has none: the broker, connections.
        properties: what else is known of the object and the operation, by the names in ACL files, such as ``durable``,
            ``queuename``, ``routingkey``, ``host``, ``schemaclass``; sizes and counts are numbers, 0 for no limit.
        held: it was granted before and goes on; it is asked for again since other rules apply. Limits on numbers do not
            count.
    """

    action: Action
    object_type: ObjectType
    name: str = ""
    properties: Mapping[str, object] = attrs.field(factory=dict)
    held: bool = False

    def __str__(self) -> str:
        text = f"{self.action.value} {self.object_type.value}"
        return f"{text} {self.name!r}" if self.name or self.object_type is ObjectType.EXCHANGE else text


@attrs.frozen
class KeyCheck:
    """A quick question instead of `Policy.refusal`, for the messages of one principal to one exchange.

    Attributes:
        allows: says of a routing key that publishing with it is allowed, so that it need not be asked for; where it
            says no, it is to be asked for.
        beginnings: of keys for which it does, unless there is a ``$`` in them: a look at these costs less than a call.
        known: keys for which it does; others come and go.
    """

    allows: Callable[[str], bool]
    beginnings: tuple[str, ...] = ()
    known: Set[str] = frozenset()


class Policy(Protocol):
    """Decides who may do what. It does not change: other rules are another policy (`Operations.policy`)."""

    @property
    def has_key_rules(self) -> bool:
        """It has rules about routing keys: each message to an exchange is to be asked for, with its key. Otherwise
        publishing is asked for once for each link and node, without a key.
        """

    def key_check(self, principal: Principal, exchange: str) -> KeyCheck | None:
        """For messages to an exchange, where `has_key_rules`; None where each message is to be asked for."""

    def refusal(self, principal: Principal, operation: Operation) -> str:
        """Why a principal may not do something; empty if it may. Must not raise."""


class AllowAll:
    """The `Policy` of a broker that has none: everybody who could log in may do everything."""

    has_key_rules = False  #: see `Policy`

    def key_check(self, principal: Principal, exchange: str) -> KeyCheck | None:  # noqa: ARG002
        return None

    def refusal(self, principal: Principal, operation: Operation) -> str:  # noqa: ARG002
        return ""


class OperationRefused(Exception):
    """The policy refuses an operation; nothing has changed."""

    def __init__(self, principal: Principal, operation: Operation, reason: str) -> None:
        self.principal = principal
        self.operation = operation
        self.reason = reason
        super().__init__(principal, operation, reason)

    def __str__(self) -> str:
        return f"{self.principal} may not {self.operation}: {self.reason}"
