"""Opens a session: with the brokers that the user named, or with an embedded broker and a host agent. It may go on with
other brokers.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
from collections.abc import Callable, Iterator, Sequence

import attrs

from qmf.connecting import BrokerTarget, ConnectionContext
from qmf.errors import ConnectError
from qmf.views.objects import ObjectKey, ObjectView
from qmf_shell.parsing.registry import Registry
from qmf_shell.session.backend import Backend, ClassName
from qmf_shell.session.console_backend import BackendCallbacks, ConsoleBackend
from qmf_shell.session.context import Context
from qmf_shell.session.lake_source import LakeSource, latest
from qmf_shell.session.multi_backend import MultiBackend
from qmf_shell.session.object_names import without_user
from qmf_shell.session.own_objects import is_own_object
from qmf_shell.session.recent import DeletionCounts, LostIdentities, LostIdentity, RecentEvents, RecentHeartbeats
from qmf_shell.session.short_ids import ShortIds
from qmf_shell.settings import ShellSettings


@attrs.frozen
class _Received:
    """What was received from brokers; the attributes are those of `Context`."""

    ids: ShortIds = attrs.field(factory=ShortIds)
    events: RecentEvents = attrs.field(factory=RecentEvents)
    heartbeats: RecentHeartbeats = attrs.field(factory=RecentHeartbeats)
    deletions: DeletionCounts = attrs.field(factory=DeletionCounts)
    lost: LostIdentities = attrs.field(factory=LostIdentities)

    def callbacks(self, changed: Callable[[], None]) -> BackendCallbacks:
        """What keeps it up to date; `changed` as of `_open_brokers`."""
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
class _OpenBrokers:
    """Brokers that are connected, what was received from them, and what closes the connections."""

    backend: Backend
    received: _Received
    stack: contextlib.ExitStack

    def enter(self, context: Context) -> None:
        """Go on with these brokers in a session."""
        received = self.received
        context.backend, context.ids, context.lost = self.backend, received.ids, received.lost
        context.events, context.heartbeats, context.deletions = received.events, received.heartbeats, received.deletions


@attrs.define
class OpenSession:
    """A session that is open.

    Attributes:
        context: what commands get.
        embedded: the broker is the embedded one.
        recorded: there is no broker, only a lake.
    """

    context: Context
    embedded: bool
    recorded: bool = False
    _on_change: list[Callable[[], None]] = attrs.field(factory=list)
    _on_switch: list[Callable[[Backend], None]] = attrs.field(factory=list)

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call `listener` when agents, classes or the connection change: on another thread; it must be quick."""
        self._on_change.append(listener)

    def on_switch(self, listener: Callable[[Backend], None]) -> None:
        """Call `listener` with the access to the new brokers when the user goes on with others."""
        self._on_switch.append(listener)


@contextlib.contextmanager
def open_session(
    brokers: Sequence[str | BrokerTarget],
    *,
    timeout: float,
    interval: float,
    follow: bool,
    registry: Registry[Context] | None = None,
    settings: ShellSettings | None = None,
    meanwhile: Callable[[], None] = lambda: None,
) -> Iterator[OpenSession]:
    """Open a session; it is closed at the end of the block.

    Args:
        brokers: the brokers, or their URLs; none for the embedded default. Of several brokers, one must be reachable;
            connections to the others are retried.
        timeout: seconds to wait for the connection and for every answer.
        interval: seconds between samples of the embedded host agent, and between publications of the embedded broker.
        follow: receive the objects that agents publish, to notice which are deleted: for interactive sessions.
        registry: all commands; None for none.
        settings: the user's settings; None for the defaults.
        meanwhile: called while the connection is being made, which is mostly waiting.

    Raises:
        ConnectError: no connection.
        UrlError: a URL is not valid.
    """
    changes: list[Callable[[], None]] = []
    switches: list[Callable[[Backend], None]] = []

    def on_changed() -> None:
        for listener in changes:
            listener()

    with contextlib.ExitStack() as stack:
        where = [BrokerTarget.of(item) for item in dict.fromkeys(brokers)] or [
            stack.enter_context(_embedded_broker(interval))
        ]
        current = _open_brokers(where, timeout, follow, on_changed, meanwhile)
        stack.callback(lambda: current.stack.close())
        context = Context(current.backend, registry or Registry(), settings=settings or ShellSettings())
        current.enter(context)

        def switch(targets: Sequence[BrokerTarget], connection: ConnectionContext | None) -> None:
            """Go on with other brokers; short ids, events and so on begin anew; else nothing changes."""
            nonlocal current
            old, current = current, _open_brokers(targets, timeout, follow, on_changed)
            current.enter(context)
            context.connection = connection
            for listener in switches:
                listener(current.backend)
            old.stack.close()

        context.switch = switch
        yield OpenSession(context, embedded=not brokers, on_change=changes, on_switch=switches)


@contextlib.contextmanager
def open_lake_session(
    lake: LakeSource, *, registry: Registry[Context] | None = None, settings: ShellSettings | None = None
) -> Iterator[OpenSession]:
    """Open a session without a broker, about the latest state in a lake; the lake is closed at the end of the block.

    Raises:
        LakeError, MissingExtraError: the lake cannot be read.
    """
    from qmf_shell.session.history_backend import HistoryBackend

    with contextlib.closing(lake):
        reader = lake.open()
        backend = HistoryBackend(reader, lambda: latest(reader))
        context = Context(backend, registry or Registry(), deletions=backend.deletions, lake=lake)
        context.settings = settings or context.settings
        yield OpenSession(context, embedded=False, recorded=True)


@contextlib.contextmanager
def _embedded_broker(interval: float) -> Iterator[BrokerTarget]:
    """An embedded broker, which is managed as well, with a host agent."""
    # Imported here: with -b neither is needed.
    from qmf.broker import EmbeddedBroker
    from qmf.hostagent import EmbeddedHostAgent

    broker = EmbeddedBroker(host="127.0.0.1", port=0, management=interval)
    with broker, EmbeddedHostAgent(broker.url, interval):
        yield BrokerTarget.of(broker.url)


def _open_brokers(
    targets: Sequence[BrokerTarget],
    timeout: float,
    follow: bool,
    changed: Callable[[], None],
    meanwhile: Callable[[], None] = lambda: None,
) -> _OpenBrokers:
    """Connect to brokers; of several, one must be reachable, and connections to the others are retried.

    The arguments and errors are those of `open_session`; `changed` is called when agents, classes or a connection
    change, and must be quick.
    """
    received = _Received()
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
        return _OpenBrokers(backend, received, stack.pop_all())


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
