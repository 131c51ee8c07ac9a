"""What commands may ask of the bus: the interface `Backend`, and the values that it answers with.

`session.live` implements it over `qmf.console`; tests implement it over a list. All methods block, may be called from
any thread and end at once on Ctrl-C. Every method raises `qmf.errors.QmfError` only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

import attrs

from qmf.errors import QmfError
from qmf.schema import ClassKey, ClassSchema, EventSchema, Method

T = TypeVar("T")


@attrs.frozen
class ObjectKey:
    """Names an object over restarts of its agent.

    Attributes:
        agent: name of its agent.
        name: its name within the agent.
        epoch: start of the agent that it was last seen in; 0 for objects that outlive restarts. Not compared.
        broker: which broker it is on; empty in a session with one broker.
    """

    agent: str
    name: str
    epoch: int = attrs.field(default=0, eq=False)
    broker: str = ""


ClassName = tuple[str, str]
"""Package and name of a class, whatever its version."""


@attrs.frozen
class AgentRecord:
    """An agent that was seen.

    Attributes:
        name: ``vendor:product:instance``.
        vendor, product, instance: its parts.
        epoch: number of its start, or 0 where it does not tell.
        heartbeat: seconds between heartbeats, or 0 where it does not tell.
        broker: URL of the broker that it was seen on.
        seen: nanoseconds since 1970, by our clock, when it was last heard of; 0 where not known.
    """

    name: str
    vendor: str
    product: str
    instance: str
    epoch: int
    heartbeat: float
    broker: str
    seen: int = attrs.field(default=0, eq=False)


@attrs.frozen
class ObjectIdentity:
    """An object as far as one needs it to be named.

    Attributes:
        key: its name.
        class_key: its class.
        index: its key text, e.g. ``/`` for the filesystem mounted there.
        title: what people call it, where its key is only a number: its property `name`; or empty.
    """

    key: ObjectKey
    class_key: ClassKey
    index: str
    title: str = ""


@attrs.frozen(eq=False)
class ObjectRecord:
    """An object as an agent answered it.

    Attributes:
        identity: how it is named.
        schema: its class.
        values: properties and statistics by wire name; references are `ObjectKey`.
        updated, created, deleted: nanoseconds since 1970; 0 where not told, `deleted` also while it lives.
        handle: what the source itself needs to call it.
        broker: name of the broker that it is on, also in a session with one.
    """

    identity: ObjectIdentity
    schema: ClassSchema
    values: Mapping[str, object]
    updated: int = 0
    created: int = 0
    deleted: int = 0
    handle: object = None
    broker: str = ""


@attrs.frozen(eq=False)
class EventRecord:
    """An event that was received.

    Attributes:
        name: ``package:name`` of its class.
        timestamp: nanoseconds since 1970.
        severity: 0 (emergency) to 7 (debug).
        values: arguments by name, in the order of the schema where it is known.
        agent: name of the agent that raised it.
        schema: its class, where known.
        broker: URL of the broker that it came by.
    """

    name: str
    timestamp: int
    severity: int
    values: Mapping[str, object]
    agent: str
    schema: EventSchema | None = None
    broker: str = ""


@attrs.frozen
class HeartbeatRecord:
    """A sign of life.

    Attributes:
        agent: whose.
        timestamp: nanoseconds since 1970 by the agent's clock.
        received: nanoseconds since 1970 by ours.
        interval: seconds until the next one, or 0 where it does not tell.
        broker: URL of the broker that it came by.
    """

    agent: str
    timestamp: int
    received: int
    interval: float
    broker: str


@attrs.frozen(eq=False)
class QueryResult(Generic[T]):
    """What several agents answered.

    Attributes:
        items: the answers.
        failures: why an agent gave none, by its name; without these agents `items` is not the whole truth.
    """

    items: Sequence[T]
    failures: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen
class ConnectionStatus:
    """Whether the bus is there.

    Attributes:
        url: of the broker, without password.
        connected: True while it is.
        reason: why not, in one line.
        name: of the broker, as the user wrote it, without user and password; objects and warnings name it so.
    """

    url: str
    connected: bool = True
    reason: str = ""
    name: str = ""


CallOutcome = Mapping[str, object] | QmfError
"""Outputs of a method by name, or why there are none."""


class Backend(Protocol):
    """Access to a bus, or to several as one."""

    @property
    def status(self) -> ConnectionStatus:
        """Whether the bus is there, at this moment; asks nobody. Of several, the first that is not."""

    @property
    def statuses(self) -> Sequence[ConnectionStatus]:
        """The same of each broker."""

    def agents(self) -> Sequence[AgentRecord]:
        """The agents that are alive, in the order of their names; asks nobody."""

    def classes(self) -> QueryResult[ClassKey]:
        """Every version of every class of objects and events that the agents have told of."""

    def schema(self, key: ClassKey) -> ClassSchema | EventSchema:
        """The class with this key. Asks for it the first time."""

    def objects(self, names: Sequence[ClassName], where: Sequence[object] = ()) -> QueryResult[ObjectRecord]:
        """All living objects of all versions of some classes, from all agents, as they are now. Asks all at once.

        Args:
            names: the classes.
            where: a predicate (QMF2.md 4.4.2) for the agents; those that ignore it are filtered here.
        """

    def get(self, identity: ObjectIdentity) -> ObjectRecord | None:
        """One object as it is now; None when its agent says that it is not there (any more)."""

    def call(self, target: ObjectRecord, method: Method, arguments: Mapping[str, object]) -> Mapping[str, object]:
        """Call a method.

        Args:
            target: the object.
            method: the method, of its schema.
            arguments: inputs by name; a reference is an `ObjectKey`.

        Returns:
            outputs by name.

        Raises:
            RemoteError: the agent said no.
            RequestTimeout: it did not answer. The method may have run.
        """

    def call_all(
        self,
        targets: Sequence[ObjectRecord],
        method: Method,
        arguments: Mapping[str, object],
        done: Callable[[int, CallOutcome], None],
    ) -> None:
        """Call the same method of many objects, several at a time. Ctrl-C leaves out those that were not begun.

        Args:
            targets, method, arguments: as of `call`.
            done: told the place in `targets` and the answer of each call as it comes, on any thread.
        """

    def set_properties(self, target: ObjectRecord, values: Mapping[str, object]) -> None:
        """Set read-write properties of an object, all or none.

        Raises:
            ConstraintError: a property is not read-write, or a value does not fit.
            RemoteError: the agent said no; only agents of this project know how to.
        """
