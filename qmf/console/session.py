"""The published console API: `Session`. Each method runs the coroutine of `AsyncSession` on the background loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qmf._closable import Closable
from qmf.console.async_session import AsyncSession
from qmf.console.broker_options import read_options
from qmf.console.callbacks import Console
from qmf.console.console_notifier import ConsoleNotifier
from qmf.console.identity import BrokerURL, ClassKey
from qmf.console.proxies import Agent, Broker, Object
from qmf.console.schema_views import SchemaClass


class Session(Closable):
    """A console session with one or more brokers.

    Use it as ``with Session() as session``, or call `close` at the end. Its methods block; they may be called from any
    thread, callbacks included. Ctrl-C during a call cancels that call only. Errors are those of `qmf.errors`.
    """

    def __init__(
        self,
        console: Console | None = None,
        rcvObjects: bool = True,
        rcvEvents: bool = True,
        rcvHeartbeats: bool = True,
        manageConnections: bool = False,
        userBindings: bool = False,
    ) -> None:
        """Make a session; it starts its threads when the first broker is added.

        Args:
            console: gets the callbacks; without one, nothing that agents publish is received.
            rcvObjects: receive objects that agents publish, for `objectProps` and `objectStats`.
            rcvEvents: receive events.
            rcvHeartbeats: call `heartbeat`.
            manageConnections: connect in the background, and again whenever the connection is lost.
            userBindings: receive only the objects and events that `bindClass` and the like select.

        Raises:
            CallerError: `userBindings` without a console.
        """
        self._core = AsyncSession(
            self, ConsoleNotifier(console, rcvObjects, rcvEvents, rcvHeartbeats, userBindings), manageConnections
        )

    def __repr__(self) -> str:
        return f"QMF Console Session Manager (brokers: {len(self.brokers)})"

    @property
    def console(self) -> Console | None:
        """The console that gets the callbacks."""
        return self._core.console

    @property
    def brokers(self) -> list[Broker]:
        """The brokers added."""
        return self._core.brokers

    def close(self) -> None:
        """Disconnect from all brokers, run the callbacks that wait, and end the threads. A second call does nothing."""
        self._core.stop()

    def addBroker(
        self,
        target: str | BrokerURL = "localhost",
        timeout: float | None = None,
        mechanisms: str | Sequence[str] | None = None,
        sessTimeout: float | None = None,
        **connectArgs: Any,
    ) -> Broker:
        """Connect to a broker.

        Args:
            target: ``host``, ``host:port``, ``user/password@host``, ``amqp://...`` or ``amqps://...``.
            timeout: seconds for connecting; None for 10.
            mechanisms: SASL mechanisms allowed, separated by spaces or as a sequence; None for all.
            sessTimeout: seconds that requests of the session itself wait for an answer; None for 60.
            connectArgs: `username`, `password`, `heartbeat` (seconds), and for ``amqps`` `ssl_certfile`,
                `ssl_keyfile`, `ssl_trustfile` (paths) and `ssl_skip_hostname_check`.

        Returns:
            the broker; with `manageConnections` it may not be connected yet.

        Raises:
            ConnectError: no connection within the time; not with `manageConnections`.
            CallerError: an invalid or unknown argument.
        """
        return self._core.run(
            self._core.add_broker(read_options(target, timeout, mechanisms, sessTimeout, connectArgs))
        )

    def delBroker(self, broker: Broker) -> None:
        """Disconnect from a broker.

        Raises:
            NotFoundError: it doesn't belong to this session.
        """
        self._core.run(self._core.del_broker(broker))

    def getPackages(self) -> list[str]:
        """Names of the packages of all agents, sorted."""
        return self._core.run(self._core.get_packages())

    def getClasses(self, packageName: str) -> list[ClassKey]:
        """Keys of the classes and events of a package."""
        return self._core.run(self._core.get_classes(packageName))

    def getSchema(self, classKey: ClassKey) -> SchemaClass:
        """The schema of a class or event.

        Raises:
            NotFoundError: no agent has it.
        """
        return self._core.run(self._core.get_schema(classKey))

    def getAgents(self, broker: Broker | None = None) -> list[Agent]:
        """The agents present, of one broker or of all."""
        return self._core.run(self._core.get_agents(broker))

    def isFindingAgents(self, broker: Broker | None = None) -> bool:
        """True while agents of one broker or of any are still being found: what asks all agents is not complete then.

        `addBroker` waits for it, at most for `sessTimeout`.
        """
        return self._core.run(self._core.is_finding_agents(broker))

    def getObjects(self, **kwargs: Any) -> list[Object]:
        """Ask agents for objects.

        Args:
            kwargs: one of

                - `_class`: name of a class, with or without `_package`;
                - `_key`: key of a class, as `getClasses` returns it;
                - `_schema`: a class, as `getSchema` returns it;
                - `_objectId`: id of an object;

                and optionally `_agent` and `_broker` to ask only these, `_timeout` in seconds (60), and values that
                properties must have, by name.

        Raises:
            CallerError: an invalid or unknown argument, or no connection.
            QmfError: no agent answered; when only some fail, that is logged.
        """
        return self._core.run(self._core.get_objects(**kwargs))

    def makeObject(self, classKey: ClassKey, **kwargs: Any) -> Object:
        """An object that belongs to no agent, with the given properties; all other values are zero.

        Raises:
            NotFoundError: no such class or property.
            ConstraintError: a value doesn't fit its type.
        """
        return self._core.run(self._core.make_object(classKey, **kwargs))

    def bindPackage(self, packageName: str) -> None:
        """Receive objects and events of a package, as far as the session receives them; needs `userBindings`."""
        self._core.run(self._core.bind_package(packageName))

    def bindClass(self, pname: str, cname: str | None = None) -> None:
        """Receive objects of a class, or of all in a package; needs `userBindings` and `rcvObjects`."""
        self._core.run(self._core.bind_class(pname, cname))

    def bindClassKey(self, classKey: ClassKey) -> None:
        """Receive objects of a class; needs `userBindings` and `rcvObjects`."""
        self._core.run(self._core.bind_class(classKey.getPackageName(), classKey.getClassName()))

    def bindEvent(self, pname: str, ename: str | None = None) -> None:
        """Receive an event, or all in a package; needs `userBindings` and `rcvEvents`."""
        self._core.run(self._core.bind_event(pname, ename))

    def bindEventKey(self, eventKey: ClassKey) -> None:
        """Receive an event; needs `userBindings` and `rcvEvents`."""
        self._core.run(self._core.bind_event(eventKey.getPackageName(), eventKey.getClassName()))

    def bindAgent(
        self,
        vendor: str | None = None,
        product: str | None = None,
        instance: str | None = None,
        label: str | None = None,
    ) -> None:
        """Call `newAgent`, `delAgent` and `heartbeat` only for such agents; ``*`` matches all. Needs `userBindings`.

        Raises:
            CallerError: no vendor, or a label, which only agents of QMFv1 have.
        """
        self._core.run(self._core.bind_agent(vendor, product, instance, label))

    def addEventFilter(
        self, package: str = "*", event: str = "*", vendor: str = "*", product: str = "*", severity: str = "*"
    ) -> None:
        """Receive only such events, besides those that were selected before; ``*`` matches all.

        Agents of libqmf2 don't put severity and names into their routing keys, so their events are no longer received
        once a filter was added.

        Args:
            package, event: names; an event needs its package.
            vendor, product: parts of the agent's name.
            severity: ``emerg``, ``alert``, ``crit``, ``error``, ``warn``, ``note``, ``info`` or ``debug``.
        """
        self._core.run(self._core.add_event_filter(package, event, vendor, product, severity))

    def addAgentFilter(self, vendor: str, product: str | None = None) -> None:
        """The same as `addHeartbeatFilter`."""
        self._core.run(self._core.add_heartbeat_filter(vendor, product))

    def addHeartbeatFilter(self, vendor: str, product: str | None = None) -> None:
        """Call `newAgent`, `delAgent` and `heartbeat` only for such agents, and for the connected broker's."""
        self._core.run(self._core.add_heartbeat_filter(vendor, product))
