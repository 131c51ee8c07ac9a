"""The brokers of a session, with all that is known of them; a session may go on with others."""

from __future__ import annotations

import concurrent.futures
import contextlib
from collections.abc import Callable, Sequence

import attrs

from qmf.connecting import BrokerTarget, ConnectionContext
from qmf.errors import ConnectError
from qmf.views.objects import ObjectKey, ObjectView
from qmf_shell.session.backend import Backend, ClassName
from qmf_shell.session.console_backend import BackendCallbacks, ConsoleBackend
from qmf_shell.session.context import Context
from qmf_shell.session.lost import LostIdentities, LostIdentity
from qmf_shell.session.multi_backend import MultiBackend
from qmf_shell.session.object_names import without_user
from qmf_shell.session.own_objects import is_own_object
from qmf_shell.session.recent import DeletionCounts, RecentEvents, RecentHeartbeats
from qmf_shell.session.short_ids import ShortIds


@attrs.frozen
class Received:
    """What was received from brokers; the attributes are those of `Context`."""

    ids: ShortIds = attrs.field(factory=ShortIds)
    events: RecentEvents = attrs.field(factory=RecentEvents)
    heartbeats: RecentHeartbeats = attrs.field(factory=RecentHeartbeats)
    deletions: DeletionCounts = attrs.field(factory=DeletionCounts)
    lost: LostIdentities = attrs.field(factory=LostIdentities)

    def callbacks(self, changed: Callable[[], None]) -> BackendCallbacks:
        """What keeps it up to date; `changed` as of `open_brokers`."""
        return BackendCallbacks(
            on_event=self.events.add,
            on_heartbeat=self.heartbeats.add,
            on_deleted=self._on_deleted,
            on_agent_lost=self._on_agent_lost,
            on_agent_found=self.lost.agent_found,
            on_change=changed,
        )

    def _on_deleted(self, key: ObjectKey, name: ClassName, when: int, own: bool) -> None:
        self.ids.mark_deleted(key, when)
        self.deletions.add(name, own)

    def _on_agent_lost(self, agent: str, broker: str, when: int, published: Sequence[ObjectView]) -> None:
        listed = [
            item
            for item in self.ids.entries()
            if not item.deleted and (item.identity.key.agent_name, item.identity.key.broker) == (agent, broker)
        ]
        self.lost.add(LostIdentity(item.identity, item.created, when, is_own_object(item)) for item in published)
        self.lost.add(LostIdentity(item.identity, item.created, when) for item in listed)


@attrs.frozen
class OpenBrokers:
    """Brokers that are connected, and what was received from them.

    Attributes:
        backend: access to them.
        received: what was received.
    """

    backend: Backend
    received: Received
    _stack: contextlib.ExitStack

    def enter(self, context: Context) -> None:
        """Go on with these brokers in a session."""
        received = self.received
        context.backend, context.ids, context.lost = self.backend, received.ids, received.lost
        context.events, context.heartbeats, context.deletions = received.events, received.heartbeats, received.deletions

    def close(self) -> None:
        """Close the connections."""
        self._stack.close()


def open_brokers(
    targets: Sequence[BrokerTarget],
    *,
    timeout: float,
    follow: bool,
    changed: Callable[[], None],
    meanwhile: Callable[[], None] = lambda: None,
) -> OpenBrokers:
    """Connect to brokers; of several, one must be reachable, and connections to the others are retried.

    Args:
        targets: the brokers.
        timeout: seconds to wait for the connection and for every answer.
        follow: receive the objects that agents publish.
        changed: called when agents, classes or a connection change; must be quick.
        meanwhile: called while the connections are being made, which is mostly waiting.

    Raises:
        ConnectError: no connection.
        UrlError: a URL is not valid.
    """
    received = Received()
    with contextlib.ExitStack() as stack:
        backends = _make(targets, timeout, received.callbacks(changed), follow)
        # Several connections are made at the same time; each is closed at the end, even while it is being made.
        pool = concurrent.futures.ThreadPoolExecutor(len(backends), thread_name_prefix="qmf-shell-connect")
        connecting = [pool.submit(stack.push(item).__enter__) for item in backends.values()]
        pool.shutdown(wait=False)
        meanwhile()
        for one in connecting:
            one.result()
        backend: Backend = next(iter(backends.values())) if len(backends) == 1 else MultiBackend(backends)
        if not any(item.connected for item in backend.statuses):
            raise ConnectError(backend.status.url, backend.status.reason)
        return OpenBrokers(backend, received, stack.pop_all())


class BrokerSwitcher:
    """Replaces the brokers of a session by others."""

    def __init__(self, current: OpenBrokers, open: Callable[[Sequence[BrokerTarget]], OpenBrokers]) -> None:
        """Begin with some brokers.

        Args:
            current: those that the session begins with.
            open: connects to others.
        """
        self._current = current
        self._open = open
        self._listeners: list[Callable[[Backend], None]] = []

    def on_switch(self, listener: Callable[[Backend], None]) -> None:
        """Call `listener` with the access to the new brokers after each switch."""
        self._listeners.append(listener)

    def switch(self, context: Context, targets: Sequence[BrokerTarget], connection: ConnectionContext | None) -> None:
        """Go on with other brokers. Short ids, events and so on begin anew; without a connection nothing changes.

        Args:
            context: of the session.
            targets: the new brokers.
            connection: the named context that they are of, or None.

        Raises:
            ConnectError: no connection.
            UrlError: a URL is not valid.
        """
        new, old = self._open(targets), self._current
        self._current = new
        new.enter(context)
        context.connection = connection
        for listener in self._listeners:
            listener(new.backend)
        old.close()

    def close(self) -> None:
        """Close the connections."""
        self._current.close()


def _make(
    targets: Sequence[BrokerTarget], timeout: float, callbacks: BackendCallbacks, follow: bool
) -> dict[str, ConsoleBackend]:
    """Backends by the label in the keys of their objects."""
    if len(targets) == 1:
        return {"": ConsoleBackend(targets[0], timeout=timeout, callbacks=callbacks, objects=follow)}
    backends: dict[str, ConsoleBackend] = {}
    for number, target in enumerate(targets, 1):
        label = without_user(str(target))
        label = f"{label}#{number}" if label in backends else label
        backends[label] = ConsoleBackend(
            target, timeout=timeout, callbacks=callbacks, objects=follow, label=label, persist=True
        )
    return backends
