"""Opens a session: with the brokers that the user named, or with an embedded broker and a host agent."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence

import attrs

from qmf.connecting import BrokerTarget
from qmf_shell.parsing.registry import Registry
from qmf_shell.session.backend import Backend
from qmf_shell.session.brokers import BrokerSwitcher, OpenBrokers, open_brokers
from qmf_shell.session.context import Context
from qmf_shell.session.lake_source import LakeSource, latest
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
    _switcher: BrokerSwitcher | None = None

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call `listener` when agents, classes or the connection change: on another thread; it must be quick."""
        self._listeners.append(listener)

    def on_switch(self, listener: Callable[[Backend], None]) -> None:
        """Call `listener` with the access to the new brokers when the user goes on with others."""
        if self._switcher is not None:
            self._switcher.on_switch(listener)


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
    listeners: list[Callable[[], None]] = []

    def on_changed() -> None:
        for listener in listeners:
            listener()

    def open_others(targets: Sequence[BrokerTarget]) -> OpenBrokers:
        return open_brokers(targets, timeout=timeout, follow=follow, changed=on_changed)

    with contextlib.ExitStack() as stack:
        where = [BrokerTarget.of(item) for item in dict.fromkeys(brokers)] or [
            stack.enter_context(_embedded_broker(interval))
        ]
        opened = open_brokers(where, timeout=timeout, follow=follow, changed=on_changed, meanwhile=meanwhile)
        switcher = BrokerSwitcher(opened, open_others)
        stack.callback(switcher.close)
        context = Context(opened.backend, registry or Registry(), settings=settings or ShellSettings())
        opened.enter(context)
        context.switch = functools.partial(switcher.switch, context)
        yield OpenSession(context, embedded=not brokers, listeners=listeners, switcher=switcher)


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
