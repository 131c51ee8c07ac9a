"""What a program overrides to be told of things: the callbacks of the published console API."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from qmf.console.brokers import Agent, Broker
    from qmf.console.events import Event
    from qmf.console.identity import ClassKey
    from qmf.console.proxies import MethodResult, Object


class Console:
    """Base of consoles: override the methods that you want and pass an instance to `Session`.

    Callbacks run one after the other on a thread of the session's own, in the order in which things happened, and may
    call back into the session. One that raises is logged, and the next one runs. The session drops object updates,
    events and heartbeats, and logs how many, when callbacks fall behind by some thousands.
    """

    def brokerConnected(self, broker: Broker) -> None:
        """A connection to a broker was made."""

    def brokerConnectionFailed(self, broker: Broker) -> None:
        """An attempt to connect failed; `broker.getError()` says why. The session tries again."""

    def brokerDisconnected(self, broker: Broker) -> None:
        """The connection to a broker was lost."""

    def newPackage(self, name: str) -> None:
        """A package was seen for the first time."""

    def newClass(self, kind: int, classKey: ClassKey) -> None:
        """A class was seen for the first time.

        Args:
            kind: `SchemaClass.CLASS_KIND_TABLE` or `SchemaClass.CLASS_KIND_EVENT`.
            classKey: for `Session.getSchema`.
        """

    def newAgent(self, agent: Agent) -> None:
        """An agent was seen for the first time, or again after it was gone or restarted."""

    def delAgent(self, agent: Agent) -> None:
        """An agent is gone: silent for three of its heartbeats, restarted, or the broker was lost."""

    def objectProps(self, broker: Broker, record: Object) -> None:
        """An object was published with its properties; statistics known from before are in `record`, too."""

    def objectStats(self, broker: Broker, record: Object) -> None:
        """An object was published with its statistics; properties known from before are in `record`, too."""

    def event(self, broker: Broker, event: Event) -> None:
        """An event was raised."""

    def heartbeat(self, agent: Agent, timestamp: int) -> None:
        """An agent sent a heartbeat; `timestamp` is in nanoseconds since 1970 by its clock."""

    def brokerInfo(self, broker: Broker) -> None:
        """The broker told its id, see `Broker.getBrokerId`; brokers without QMF never do."""

    def methodResponse(self, broker: Broker, seq: int, response: MethodResult) -> None:
        """A method that was called with `_async=True` answered, or failed.

        Args:
            broker: through which it was called.
            seq: what the call returned. This callback may run before it does.
            response: the result; on failure, `status` is not 0 and `text` says why.
        """


class DebugConsole(Console):
    """Prints every callback."""

    def brokerConnected(self, broker: Broker) -> None:
        print("brokerConnected:", broker)

    def brokerConnectionFailed(self, broker: Broker) -> None:
        print("brokerConnectionFailed:", broker)

    def brokerDisconnected(self, broker: Broker) -> None:
        print("brokerDisconnected:", broker)

    def newPackage(self, name: str) -> None:
        print("newPackage:", name)

    def newClass(self, kind: int, classKey: ClassKey) -> None:
        print("newClass:", kind, classKey)

    def newAgent(self, agent: Agent) -> None:
        print("newAgent:", agent)

    def delAgent(self, agent: Agent) -> None:
        print("delAgent:", agent)

    def objectProps(self, broker: Broker, record: Object) -> None:
        print("objectProps:", broker, record)

    def objectStats(self, broker: Broker, record: Object) -> None:
        print("objectStats:", broker, record)

    def event(self, broker: Broker, event: Event) -> None:
        print("event:", broker, event)

    def heartbeat(self, agent: Agent, timestamp: int) -> None:
        print("heartbeat:", agent, timestamp)

    def brokerInfo(self, broker: Broker) -> None:
        print("brokerInfo:", broker)

    def methodResponse(self, broker: Broker, seq: int, response: MethodResult) -> None:
        print("methodResponse:", broker, seq, response)
