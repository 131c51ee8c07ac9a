"""Opening a session: on the broker that the user named, or on an embedded one with a host agent to look at."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import attrs

from qmf_shell.commands import standard
from qmf_shell.session.context import Context
from qmf_shell.session.events import EventRing
from qmf_shell.session.ids import Ids
from qmf_shell.session.live import Live, Watcher


@attrs.frozen
class Opened:
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
def open_session(url: str | None, *, timeout: float, interval: float, live: bool) -> Iterator[Opened]:
    """A session, closed with the block.

    Args:
        url: of the broker, or None for the embedded default.
        timeout: seconds to wait for the connection and for every answer.
        interval: seconds between samples of the embedded host agent.
        live: follow the objects that agents publish, for sessions that stay.

    Raises:
        ConnectError: no connection.
        UrlError: `url` is none.
    """
    listeners: list[Callable[[], None]] = []
    ids, events = Ids(), EventRing()

    def changed() -> None:
        for listener in listeners:
            listener()

    watcher = Watcher(event=events.add, gone=ids.bury, changed=changed)
    with contextlib.ExitStack() as stack:
        where = url if url is not None else stack.enter_context(_embedded(interval))
        source = stack.enter_context(Live(where, timeout=timeout, watcher=watcher, objects=live))
        yield Opened(Context(source, standard(), ids, events), embedded=url is None, listeners=listeners)


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
