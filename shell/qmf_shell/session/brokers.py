"""The brokers of a session, with all that is known of them; a session may go on with others."""

from __future__ import annotations

import contextlib
import threading
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


@attrs.frozen(kw_only=True)
class OpenBrokers:
    """Brokers that are connected, and what was received from them.

    Attributes:
        backend: access to them.
        ids, events, heartbeats, deletions, lost: as in `Context`.
    """

    backend: Backend
    ids: ShortIds
    events: RecentEvents
    heartbeats: RecentHeartbeats
    deletions: DeletionCounts
    lost: LostIdentities
    _stack: contextlib.ExitStack

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
    ids, events, heartbeats, deletions = ShortIds(), RecentEvents(), RecentHeartbeats(), DeletionCounts()
    lost = LostIdentities()
    callbacks = _callbacks(ids, events, heartbeats, deletions, lost, changed)
    with contextlib.ExitStack() as stack:
        backends = _make(targets, timeout, callbacks, follow)
        threads = [_ConnectThread(item) for item in backends.values()]
        for thread in threads:
            stack.callback(thread.close)
            thread.start()
        meanwhile()
        for thread in threads:
            thread.wait()
        backend: Backend = next(iter(backends.values())) if len(backends) == 1 else MultiBackend(backends)
        if not any(item.connected for item in backend.statuses):
            raise ConnectError(backend.status.url, backend.status.reason)
        return OpenBrokers(
            backend=backend,
            ids=ids,
            events=events,
            heartbeats=heartbeats,
            deletions=deletions,
            lost=lost,
            stack=stack.pop_all(),
        )


def _callbacks(
    ids: ShortIds,
    events: RecentEvents,
    heartbeats: RecentHeartbeats,
    deletions: DeletionCounts,
    lost: LostIdentities,
    changed: Callable[[], None],
) -> BackendCallbacks:
    """What keeps all that is known of brokers up to date."""

    def on_deleted(key: ObjectKey, name: ClassName, when: int, own: bool) -> None:
        ids.mark_deleted(key, when)
        deletions.add(name, own)

    def agent_lost(agent: str, broker: str, when: int, published: Sequence[ObjectView]) -> None:
        listed = [item for item in ids.entries() if not item.deleted and _is_of(item.identity.key, agent, broker)]
        own = [is_own_object(item, ()) for item in published]
        lost.add(
            LostIdentity(item.identity, item.created, when, mark) for item, mark in zip(published, own, strict=True)
        )
        lost.add(LostIdentity(item.identity, item.created, when) for item in listed)

    return BackendCallbacks(
        on_event=events.add,
        on_heartbeat=heartbeats.add,
        on_deleted=on_deleted,
        on_agent_lost=agent_lost,
        on_agent_found=lost.agent_found,
        on_change=changed,
    )


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
        context.backend, context.ids, context.lost = new.backend, new.ids, new.lost
        context.events, context.heartbeats, context.deletions = new.events, new.heartbeats, new.deletions
        context.connection = connection
        for listener in self._listeners:
            listener(new.backend)
        old.close()

    def close(self) -> None:
        """Close the connections."""
        self._current.close()


def _is_of(key: ObjectKey, agent: str, broker: str) -> bool:
    return (key.agent_name, key.broker) == (agent, broker)


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


class _ConnectThread:
    """A thread that makes one connection, so that several are made at the same time."""

    def __init__(self, backend: ConsoleBackend) -> None:
        self._backend = backend
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="qmf-shell-connect", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def wait(self) -> None:
        """Wait for the connection; raises the error of the thread."""
        self._thread.join()
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Close the connection, even while it is being made."""
        self._backend.__exit__(None, None, None)

    def _run(self) -> None:
        try:
            self._backend.__enter__()
        except BaseException as error:  # noqa: BLE001 - raised again by `wait`, on its caller's thread
            self._error = error
