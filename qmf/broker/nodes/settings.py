"""How a queue or an exchange behaves: values that are given when it is created, and do not change."""

from __future__ import annotations

import enum
from collections.abc import Mapping

import attrs

from qmf.broker.nodes.last_values import Replacement


@attrs.frozen
class QueueLimits:
    """How much a queue holds, messages that consumers have acquired included.

    Attributes:
        count: number of messages; None for any number.
        size: bytes of all messages together; None for any number. The default is that of qpidd.
    """

    count: int | None = None
    size: int | None = 100 * 1024 * 1024


#: Limits of a queue that belongs to a subscription, which drops its oldest message when it is full: for events and
#: statistics the newest matter, and a slow receiver must not slow down the sender. What hundreds of agents publish in
#: one interval is some thousand messages; the embedded broker shares a process with a shell, and has about four queues
#: per console.
SUBSCRIPTION_LIMITS = QueueLimits(10_000, 32 * 1024 * 1024)


class OverflowPolicy(enum.Enum):
    """What a full queue does with a new message; the values are those of `qpid.policy_type`."""

    REJECT = "reject"  #: refuses it
    RING = "ring"  #: gives up the oldest message
    RING_STRICT = "ring-strict"  #: gives up the oldest message, and refuses the new one if that is acquired
    FLOW_TO_DISK = "flow-to-disk"  #: keeps it in the store instead of memory
    SELF_DESTRUCT = "self-destruct"  #: the queue is deleted


class Lifetime(enum.Enum):
    """When a queue with `auto_delete` is deleted; the values are those of `qpid.lifetime-policy`."""

    UNUSED = "delete-if-unused"  #: the last consumer or browser is gone
    EMPTY = "delete-if-empty"  #: it is empty
    UNUSED_AND_EMPTY = "delete-if-unused-and-empty"
    ON_CLOSE = "delete-on-close"  #: the link that created it is gone


@attrs.frozen
class Threshold:
    """A depth of a queue at which something happens; None for a value without one.

    Attributes:
        count: messages.
        size: bytes.
    """

    count: int | None = None
    size: int | None = None

    def __bool__(self) -> bool:
        return bool(self.count or self.size)


@attrs.frozen
class QueueSettings:
    """How a queue behaves.

    Attributes:
        durable: it outlives the broker's process.
        exclusive: only one consumer, or those of one session, are allowed.
        auto_delete: the broker deletes it, as `lifetime` says.
        lifetime: when.
        delete_delay: seconds for which it is kept, though it could be deleted.
        limits: how much it holds.
        overflow: what it does when it is full.
        keeps_large: with the policy `RING`, a message above the limit is kept alone; otherwise it is refused.
        value_key: of a last value queue: the application property with the key of a message.
        replacement: of a last value queue: how messages are replaced; None for other queues.
        priorities: number of levels of priority; 0 for none.
        fairshare: deliveries in a row from one level while others wait; 0 for any number.
        shares: the same for single levels.
        group_key: application property with the name of a message's group; empty for no groups.
        group_timestamp: messages get the time of their arrival, which consoles see with the groups.
        flow_stop, flow_resume: depths at which senders get no more credit, and get it again.
        alert_up, alert_down: depths at which an event is raised when they are exceeded, and when the queue has drained.
        max_deliveries: failed deliveries after which a message goes to the alternate exchange; 0 for any number.
        alternate: name of the alternate exchange; empty for none.
        browse_only: messages can be browsed only.
        no_local: messages from the client of the exclusive consumer are not kept.
        excluded: messages of the client with this container id are not kept; empty for none.
        filter: a selector for the messages that are kept; empty for all.
        excluded_traces: ids of brokers; messages that have left one of them by a link are not kept.
        sequence_key: annotation that gets the position of a message in the queue; empty for none.
        event_generation: 1 for events when messages are enqueued, 2 for those when they are dequeued, too; 0 for none.
        arguments: as given when the queue was created, unknown ones included.
    """

    durable: bool = False
    exclusive: bool = False
    auto_delete: bool = False
    lifetime: Lifetime = Lifetime.UNUSED
    delete_delay: int = 0
    limits: QueueLimits = QueueLimits()
    overflow: OverflowPolicy = OverflowPolicy.REJECT
    keeps_large: bool = False
    value_key: str = ""
    replacement: Replacement | None = None
    priorities: int = 0
    fairshare: int = 0
    shares: Mapping[int, int] = attrs.field(factory=dict)
    group_key: str = ""
    group_timestamp: bool = False
    flow_stop: Threshold = Threshold()
    flow_resume: Threshold = Threshold()
    alert_up: Threshold = Threshold()
    alert_down: Threshold = Threshold()
    max_deliveries: int = 0
    alternate: str = ""
    browse_only: bool = False
    no_local: bool = False
    excluded: str = ""
    filter: str = ""
    excluded_traces: tuple[str, ...] = ()
    sequence_key: str = ""
    event_generation: int = 0
    arguments: Mapping[str, object] = attrs.field(factory=dict)


@attrs.frozen
class ExchangeSettings:
    """How an exchange behaves.

    Attributes:
        kind: name of its type, such as ``topic``.
        durable: it outlives the broker's process.
        auto_delete: it is deleted with its last binding, or when nobody uses it any more.
        alternate: name of the exchange for messages that no binding matches; empty for none.
        sequence: messages are numbered, in the annotation ``qpid.msg_sequence``.
        initial_value: a new binding is given the last message.
        arguments: as given when the exchange was created, unknown ones included.
    """

    kind: str = "topic"
    durable: bool = False
    auto_delete: bool = False
    alternate: str = ""
    sequence: bool = False
    initial_value: bool = False
    arguments: Mapping[str, object] = attrs.field(factory=dict)


class SubscriptionSettings:
    """The settings of one broker.

    Attributes:
        lasting: of queues that stay until they are deleted.
    """

    def __init__(self, limits: QueueLimits) -> None:
        """Make the settings; `limits` are those of all queues. Where they are the usual ones, subscriptions have their
        own.
        """
        usual = QueueLimits()
        self.lasting = QueueSettings(
            exclusive=True,
            limits=QueueLimits(
                SUBSCRIPTION_LIMITS.count if limits.count == usual.count else limits.count,
                SUBSCRIPTION_LIMITS.size if limits.size == usual.size else limits.size,
            ),
            overflow=OverflowPolicy.RING,
            keeps_large=True,
        )
        self._until_close = _until_close(self.lasting)

    def until_close(self, settings: QueueSettings) -> QueueSettings:
        """Any settings, for a queue that is deleted with its link."""
        return self._until_close if settings is self.lasting else _until_close(settings)


def _until_close(settings: QueueSettings) -> QueueSettings:
    return attrs.evolve(settings, auto_delete=True, lifetime=Lifetime.ON_CLOSE)
