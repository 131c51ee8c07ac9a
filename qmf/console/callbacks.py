"""The callbacks of the published console API: `Console`, whose methods a program overrides, and `DebugConsole`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from qmf.console.events import Event
    from qmf.console.identity import ClassKey
    from qmf.console.proxies import Agent, Broker, MethodResult, Object


class Console:
    """Base class of consoles: override the methods that you need and pass an instance to `Session`.

    Callbacks run one at a time on a thread of the session, in the order of what they report, and may call methods of
    the session. The error of a callback that raises is logged. If thousands of callbacks wait, the session drops those
    for object updates, events and heartbeats, and logs how many.
    """

    def brokerConnected(self, broker: Broker) -> None:
        """A broker was connected."""

    def brokerConnectionFailed(self, broker: Broker) -> None:
        """An attempt to connect failed; `broker.getError()` is the reason. The session tries again."""

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
        """An agent was found, for the first time or again after it was removed or restarted."""

    def delAgent(self, agent: Agent) -> None:
        """An agent was removed: it was silent for three heartbeats, ended or restarted; or the broker was lost."""

    def objectProps(self, broker: Broker, record: Object) -> None:
        """An object was published with its properties; `record` holds the statistics known from before, too."""

    def objectStats(self, broker: Broker, record: Object) -> None:
        """An object was published with its statistics; `record` holds the properties known from before, too."""

    def event(self, broker: Broker, event: Event) -> None:
        """An event was raised."""

    def heartbeat(self, agent: Agent, timestamp: int) -> None:
        """An agent sent a heartbeat; `timestamp` is in nanoseconds since 1970 by its clock."""

    def brokerInfo(self, broker: Broker) -> None:
        """The id of the broker is known, see `Broker.getBrokerId`; brokers without QMF have none."""

    def methodResponse(self, broker: Broker, seq: int, response: MethodResult) -> None:
        """A method that was called with `_async=True` returned, or failed.

        Args:
            broker: the broker through which it was called.
            seq: the sequence number that the call returned. This callback may run before the call returns.
            response: the result; on failure, `status` is not 0 and `text` is the reason.
        """


class DebugConsole(Console):
    """Prints every callback."""


def _printing(name: str) -> Callable[..., None]:
    @functools.wraps(getattr(Console, name))
    def callback(_: DebugConsole, *arguments: object) -> None:
        print(f"{name}:", *arguments)

    return callback


for _name in [name for name in vars(Console) if not name.startswith("_")]:
    setattr(DebugConsole, _name, _printing(_name))
