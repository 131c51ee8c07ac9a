"""Events that the compiled functions handle: messages that arrive whole, messages that are accepted, credit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from qmf.bus.engine.link import Link
from qmf.bus.engine.native import Native, address

#: Called with the rows and the bytes of a batch, the links by number, and what is called for changes of credit.
OnBatch = Callable[[Iterable[tuple[int, ...]], Any, Sequence[Link], Callable[[Link], None]], None]


class SimpleEvents:
    """The simple events of one engine, and the table of its links that the compiled functions look at."""

    def __init__(
        self,
        native: Native,
        links: Mapping[Any, Link],
        limit: int,
        on_batch: OnBatch,
        on_flow: Callable[[Link], None],
    ) -> None:
        """Args:

        native: the compiled functions.
        links: of the engine, which owns them.
        limit: bytes of the largest message that is accepted.
        on_batch: handles what was read.
        on_flow: handles a change of credit.
        """
        self._native = native
        self._links = links
        self._limit = limit
        self._on_batch = on_batch
        self._on_flow = on_flow
        #: None when a link has come or gone since it was made.
        self._table: Any = None
        self._numbered: Sequence[Link] = ()

    def add(self, link: Link) -> None:
        """A link has come."""
        link.address, link.session_address = address(link.impl), address(link.session_impl)
        self._table = None

    def forget_table(self) -> None:
        """Links are gone: proton may use their addresses again."""
        self._table = None

    def readiness(self, link: Link, backlog: int) -> int:
        """See `batches.c`; the link has not ended."""
        number: int = self._native.readiness(link.address, link.session_address, backlog)
        return number

    def output(self, transport: int, collector: int) -> tuple[bytes, bool, bool]:
        """See `Native.output`."""
        return self._native.output(transport, collector)

    def collect(self, collector: int, *, flow: bool) -> bool:
        """Handle events.

        Args:
            collector: its address.
            flow: handle changes of credit; otherwise they are dropped.

        Returns:
            True if the next event is not simple, False if there is none.
        """
        if self._table is None:
            self._make_table()
        while True:
            rows, data, more = self._native.collect(collector, self._table, self._limit, flow=flow)
            if not rows:
                return more
            self._on_batch(rows, data, self._numbered, self._on_flow)
            if not more:
                return False

    def _make_table(self) -> None:
        self._numbered = list(self._links.values())
        for number, link in enumerate(self._numbered):
            link.number = number
        self._table = self._native.link_table((link.address, link.number, link.flags) for link in self._numbered)
        for place, row in enumerate(self._table):
            self._numbered[row.number].set_row(self._table, place)
