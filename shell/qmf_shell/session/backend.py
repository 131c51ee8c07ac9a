"""The interface to the bus, `Backend`, and the values that it returns.

`session.console_backend` implements it over `qmf.console`; tests implement it over a list. All methods block, may be
called from any thread, end at once on Ctrl-C, and raise only `qmf.errors.QmfError`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, Protocol, Self, TypeVar

import attrs

from qmf.console.aio import Agent, ChangeKind, OrderKey
from qmf.errors import QmfError
from qmf.schema import ClassKey, ClassSchema, EventSchema, Method
from qmf.views.objects import ObjectIdentity, ObjectKey, ObjectView

T = TypeVar("T")


ClassName = tuple[str, str]
"""Package and name of a class, without its version."""


@attrs.frozen
class AgentRecord:
    """An agent on the bus.

    Attributes:
        name: ``vendor:product:instance``.
        vendor, product, instance: its parts.
        epoch: number of its start; 0 if it does not send one.
        heartbeat: seconds between heartbeats; 0 if it does not send them.
        broker: URL of the broker that it is on.
        seen: when its last heartbeat was received, by our clock, in nanoseconds since 1970; 0 if unknown.
        path: ids of the brokers behind `broker` by which it is reached, the nearest one first.
    """

    name: str
    vendor: str
    product: str
    instance: str
    epoch: int
    heartbeat: float
    broker: str
    seen: int = attrs.field(default=0, eq=False)
    path: tuple[str, ...] = ()

    @classmethod
    def of(cls, agent: Agent, url: str, seen: int = 0) -> Self:
        """An agent as the console knows it, at the broker with this URL; `seen` as the attribute."""
        interval = agent.info.heartbeat_interval
        return cls(
            agent.name, agent.vendor, agent.product, agent.instance, agent.epoch, interval, url, seen, agent.path
        )


@attrs.frozen
class HeartbeatRecord:
    """A heartbeat that was received.

    Attributes:
        agent: name of the agent.
        timestamp: nanoseconds since 1970 by the agent's clock.
        received: nanoseconds since 1970 by our clock.
        interval: seconds until the next one; 0 if the agent does not send it.
        broker: URL of the broker that it was received from.
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
        failures: the reason, for each agent that did not answer, by its name; with failures `items` is incomplete.
        total: how many there are without a limit; None if that is not known.
    """

    items: Sequence[T]
    failures: Mapping[str, str] = attrs.field(factory=dict)
    total: int | None = attrs.field(default=attrs.Factory(lambda self: len(self.items), takes_self=True))


@attrs.frozen
class ObjectLimit:
    """How many objects are enough, and which come first. Of many agents the first ones by name are asked, if objects
    are ordered by nothing but their names.

    Attributes:
        limit: how many.
        order: of the objects.
    """

    limit: int
    order: tuple[OrderKey, ...]

    @property
    def by_name(self) -> bool:
        """True if objects are ordered by nothing but their names."""
        return all(key.name == OrderKey.OBJECT_NAME for key in self.order)


@attrs.frozen
class ConnectionStatus:
    """The state of the connection to a broker.

    Attributes:
        url: of the broker, without password.
        connected: True while connected.
        reason: why not connected, in one line.
        name: of the broker, as the user wrote it, without user and password; objects and warnings name it so.
        finding: how far agents are being found, while they are; empty when all are known.
    """

    url: str
    connected: bool = True
    reason: str = ""
    name: str = ""
    finding: str = ""


@attrs.frozen
class GoneObject:
    """An object that is no longer followed.

    Attributes:
        key: the object.
        kind: why.
        at: when, by our clock or its agent's, in nanoseconds since 1970.
    """

    key: ObjectKey
    kind: ChangeKind
    at: int


@attrs.frozen(eq=False)
class ObjectChanges:
    """What happened to followed objects since the changes were taken before.

    Attributes:
        records: objects that are new or have other values, as they are now.
        gone: objects that are no longer followed. If an object is in both, it came back.
    """

    records: Sequence[ObjectView] = ()
    gone: Sequence[GoneObject] = ()


class ObjectFeed(Protocol):
    """Objects of some classes that are followed. The first changes are the objects that exist."""

    @property
    def complete(self) -> bool:
        """True once all agents present have answered, or failed to: the next `take` gives what is left of the objects
        that existed then."""

    @property
    def failures(self) -> Mapping[str, str]:
        """The reason, for each agent that does not answer now, by its name."""

    def take(self) -> ObjectChanges:
        """The changes since the previous call, without waiting for the bus."""

    def close(self) -> None:
        """End following. Does not wait for the bus. A second call does nothing."""


CallOutcome = Mapping[str, object] | QmfError
"""The outputs of a method by name, or the error of the call."""


class Backend(Protocol):
    """Access to one broker, or to several as one."""

    @property
    def status(self) -> ConnectionStatus:
        """The state of the connection, without asking the bus. Of several brokers, the first that is not connected."""

    @property
    def statuses(self) -> Sequence[ConnectionStatus]:
        """The state of each connection, without asking the bus."""
        return (self.status,)

    def agents(self) -> Sequence[AgentRecord]:
        """The agents that are alive, ordered by name, without asking the bus."""

    def classes(self) -> QueryResult[ClassKey]:
        """Every version of every class of objects and events that the agents have sent."""

    def schema(self, key: ClassKey) -> ClassSchema | EventSchema:
        """The class with this key. The first time, it is requested from an agent."""

    def objects(
        self,
        names: Sequence[ClassName],
        where: Sequence[object] = (),
        first: ObjectLimit | None = None,
        text: str = "",
    ) -> QueryResult[ObjectView]:
        """All existing objects of all versions of some classes, from all agents. Requests them at the same time.

        Args:
            where: a predicate (QMF2.md 4.4.2) for the agents; the answers of agents that ignore it are filtered here.
            first: these are enough of each class; there may be more in the answer. None for all.
            text: only those whose names or values contain it, in any case of letters; empty for all.
        """

    def sends_first(self, name: ClassName) -> bool:
        """True if all agents that may have objects of a class send no more than the first ones when asked for those."""

    def follow(
        self, names: Sequence[ClassName], where: Sequence[object] = (), *, interval: float, recheck: float
    ) -> ObjectFeed:
        """Follow all objects of some classes. Agents that come, go or are restarted are taken into account.

        Args:
            names, where: as for `objects`.
            interval: seconds between what agents publish for this, or between queries to agents that don't publish.
            recheck: seconds between queries to agents that publish to all, as qpidd does; shorter ones show more
                recent values, and cost a query of all objects each.
        """

    def get(self, identity: ObjectIdentity) -> ObjectView | None:
        """One object with its current values; None if its agent does not have it (any more)."""

    def call(self, target: ObjectView, method: Method, arguments: Mapping[str, object]) -> Mapping[str, object]:
        """Call a method.

        Args:
            method: the method, from the object's schema.
            arguments: inputs by name; a reference is an `ObjectKey`.

        Returns:
            outputs by name.

        Raises:
            RemoteError: the agent answered with an exception.
            RequestTimeout: the agent did not answer. The method may have run.
        """

    def call_all(
        self,
        targets: Sequence[ObjectView],
        method: Method,
        arguments: Mapping[str, object],
        on_outcome: Callable[[int, CallOutcome], None],
    ) -> None:
        """Call the same method of many objects, several at a time. After Ctrl-C no further calls are started.

        Args:
            targets, method, arguments: as in `call`.
            on_outcome: called with the place in `targets` and the outcome of each call, on any thread.
        """

    def set_properties(self, target: ObjectView, values: Mapping[str, object]) -> None:
        """Set read-write properties of an object: all of them, or none.

        Raises:
            ConstraintError: a property is not read-write, or a value does not fit.
            RemoteError: the agent answered with an exception; only agents of this project support this.
        """
