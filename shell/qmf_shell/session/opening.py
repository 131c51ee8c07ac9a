"""Opening a session: on the broker that the user named, or on an embedded one with a host agent to look at."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence

import attrs

from qmf.errors import ConnectError
from qmf_shell.commands import standard
from qmf_shell.session.backend import Backend, ClassName, ObjectKey
from qmf_shell.session.console_backend import BackendCallbacks, ConsoleBackend
from qmf_shell.session.context import Context
from qmf_shell.session.heartbeats import DeletionCounts, RecentHeartbeats
from qmf_shell.session.multi_backend import MultiBackend
from qmf_shell.session.object_names import without_user
from qmf_shell.session.recent import RecentEvents
from qmf_shell.session.short_ids import ShortIds
from qmf_shell.settings import Settings


@attrs.frozen
class OpenSession:
    """A session that is open.

    Attributes:
        context: what commands get.
        embedded: the broker is our own.
    """

    context: Context
    embedded: bool
    _listeners: list[Callable[[], None]] = attrs.field(factory=list)

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call `listener` when agents, classes or the connection change; from another thread, so it must be quick."""
        self._listeners.append(listener)


@contextlib.contextmanager
def open_session(
    urls: Sequence[str],
    *,
    timeout: float,
    interval: float,
    live: bool,
    settings: Settings | None = None,
    meanwhile: Callable[[], None] = lambda: None,
) -> Iterator[OpenSession]:
    """A session, closed with the block.

    Args:
        urls: of the brokers; none for the embedded default. Of several, those that are not there are tried again
            later, as long as one is.
        timeout: seconds to wait for the connection and for every answer.
        interval: seconds between samples of the embedded host agent.
        live: follow the objects that agents publish, for sessions that stay.
        settings: the user's; None for the defaults.
        meanwhile: called while the connection is made, which is mostly waiting.

    Raises:
        ConnectError: no connection.
        UrlError: a URL is none.
    """
    listeners: list[Callable[[], None]] = []
    ids, events, heartbeats, deletions = ShortIds(), RecentEvents(), RecentHeartbeats(), DeletionCounts()

    def changed() -> None:
        for listener in listeners:
            listener()

    def gone(key: ObjectKey, name: ClassName, when: int) -> None:
        ids.mark_deleted(key, when)
        deletions.add(name)

    watcher = BackendCallbacks(event=events.add, heartbeat=heartbeats.add, gone=gone, changed=changed)
    with contextlib.ExitStack() as stack:
        where = list(dict.fromkeys(urls)) or [stack.enter_context(_embedded(interval))]
        lives = _make(where, timeout, watcher, live)
        connecting = [_Connecting(item) for item in lives.values()]
        for item in connecting:
            stack.callback(item.close)
            item.start()
        meanwhile()
        for item in connecting:
            item.wait()
        backend: Backend = next(iter(lives.values())) if len(lives) == 1 else MultiBackend(lives)
        if not any(item.connected for item in backend.statuses):
            raise ConnectError(backend.status.url, backend.status.reason)
        context = Context(backend, standard(), ids, events, heartbeats, deletions, settings or Settings())
        yield OpenSession(context, embedded=not urls, listeners=listeners)


def _make(urls: Sequence[str], timeout: float, watcher: BackendCallbacks, live: bool) -> dict[str, ConsoleBackend]:
    if len(urls) == 1:
        return {"": ConsoleBackend(urls[0], timeout=timeout, watcher=watcher, objects=live)}
    lives: dict[str, ConsoleBackend] = {}
    for number, url in enumerate(urls, 1):
        label = without_user(url)
        label = f"{label}#{number}" if label in lives else label
        lives[label] = ConsoleBackend(url, timeout=timeout, watcher=watcher, objects=live, label=label, persist=True)
    return lives


class _Connecting:
    """A connection that is being made on a thread of its own, so that several are made at a time."""

    def __init__(self, live: ConsoleBackend) -> None:
        self._live = live
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="qmf-shell-connect", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def wait(self) -> None:
        """Wait until it is made; raises what went wrong."""
        self._thread.join()
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """End it, also while it is being made."""
        self._live.__exit__(None, None, None)

    def _run(self) -> None:
        try:
            self._live.__enter__()
        except BaseException as error:  # noqa: BLE001 - it is raised by `wait`, on the thread that cares
            self._error = error


@contextlib.contextmanager
def _embedded(interval: float) -> Iterator[str]:
    """An embedded broker with a host agent; its URL."""
    # Late: with -b neither is needed.
    from qmf.broker import EmbeddedBroker
    from qmf.hostagent import EmbeddedHostAgent

    broker = EmbeddedBroker(host="127.0.0.1", port=0)
    broker.start()
    try:
        agent = EmbeddedHostAgent(broker.url, interval)
        agent.start()
        try:
            yield broker.url
        finally:
            agent.close()
    finally:
        broker.close()
