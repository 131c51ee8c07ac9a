"""Opens a session: with the brokers that the user named, or with an embedded broker and a host agent."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence

import attrs

from qmf.connecting import BrokerTarget
from qmf.errors import ConnectError
from qmf_shell.parsing.registry import Registry
from qmf_shell.session.backend import Backend, ClassName, ObjectKey, ObjectRecord
from qmf_shell.session.console_backend import BackendCallbacks, ConsoleBackend
from qmf_shell.session.context import Context
from qmf_shell.session.lake_source import LakeSource, latest
from qmf_shell.session.lost import LostObject, LostObjects
from qmf_shell.session.multi_backend import MultiBackend
from qmf_shell.session.object_names import without_user
from qmf_shell.session.own_objects import is_own_object
from qmf_shell.session.recent import DeletionCounts, RecentEvents, RecentHeartbeats
from qmf_shell.session.short_ids import ShortIds
from qmf_shell.settings import ShellSettings


@attrs.frozen
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
    _listeners: list[Callable[[], None]] = attrs.field(factory=list)

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call `listener` when agents, classes or the connection change: on another thread; it must be quick."""
        self._listeners.append(listener)


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
        interval: seconds between samples of the embedded host agent.
        follow: receive the objects that agents publish, to notice which are deleted: for interactive sessions.
        registry: all commands; None for none.
        settings: the user's settings; None for the defaults.
        meanwhile: called while the connection is being made, which is mostly waiting.

    Raises:
        ConnectError: no connection.
        UrlError: a URL is not valid.
    """
    listeners: list[Callable[[], None]] = []
    ids, events, heartbeats, deletions = ShortIds(), RecentEvents(), RecentHeartbeats(), DeletionCounts()
    lost = LostObjects()

    def changed() -> None:
        for listener in listeners:
            listener()

    def deleted(key: ObjectKey, name: ClassName, when: int, own: bool) -> None:
        ids.mark_deleted(key, when)
        deletions.add(name, own)

    def agent_lost(agent: str, broker: str, when: int, published: Sequence[ObjectRecord]) -> None:
        listed = [item for item in ids.entries() if not item.deleted and _is_of(item.identity.key, agent, broker)]
        own = [is_own_object(item, ()) for item in published]
        lost.add(LostObject(item.identity, item.created, when, mark) for item, mark in zip(published, own, strict=True))
        lost.add(LostObject(item.identity, item.created, when) for item in listed)

    callbacks = BackendCallbacks(
        on_event=events.add,
        on_heartbeat=heartbeats.add,
        on_deleted=deleted,
        on_agent_lost=agent_lost,
        on_agent_found=lost.agent_found,
        on_change=changed,
    )
    with contextlib.ExitStack() as stack:
        where = [BrokerTarget.of(item) for item in dict.fromkeys(brokers)] or [stack.enter_context(_embedded(interval))]
        backends = _make(where, timeout, callbacks, follow)
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
        context = Context(
            backend,
            registry or Registry(),
            ids,
            events,
            heartbeats,
            deletions,
            settings=settings or ShellSettings(),
            lost=lost,
        )
        yield OpenSession(context, embedded=not brokers, listeners=listeners)


def _is_of(key: ObjectKey, agent: str, broker: str) -> bool:
    return (key.agent, key.broker) == (agent, broker)


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
def _embedded(interval: float) -> Iterator[BrokerTarget]:
    """An embedded broker with a host agent."""
    # Imported here: with -b neither is needed.
    from qmf.broker import EmbeddedBroker
    from qmf.hostagent import EmbeddedHostAgent

    broker = EmbeddedBroker(host="127.0.0.1", port=0)
    broker.start()
    try:
        agent = EmbeddedHostAgent(broker.url, interval)
        agent.start()
        try:
            yield BrokerTarget.of(broker.url)
        finally:
            agent.close()
    finally:
        broker.close()
