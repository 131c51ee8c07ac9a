"""Events that the compiled functions handle: messages that arrive whole, messages that are accepted, credit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from qmf.bus.engine.deliveries import Deliveries, OnFlow
from qmf.bus.engine.link import Link
from qmf.bus.engine.native import Native, address, link_table


class SimpleEvents:
    """The simple events of one engine, and the table of its links that the compiled functions look at.

    Attributes:
        output: takes bytes for the peer; see `native.c`. Called with the addresses of transport and collector, and how
            many bytes to take at most, or a frame more; returns the bytes, and whether an event is left.
    """

    def __init__(
        self, native: Native, links: Mapping[Any, Link], limit: int, deliveries: Deliveries, on_flow: OnFlow
    ) -> None:
        """Args:

        native: the compiled functions.
        links: of the engine, which owns them.
        limit: bytes of the largest message that is accepted.
        deliveries: of the engine: they handle what was read.
        on_flow: handles a change of credit.
        """
        self._native = native
        self.output: Callable[[int, int, int], tuple[bytes, bool]] = native.output
        self._links = links
        self._limit = limit
        self._deliveries = deliveries
        self._on_flow = on_flow
        #: None when a link has come or gone since it was made.
        self._table: bytearray | None = None
        self._numbered: list[Link] = []

    def add(self, link: Link) -> None:
        """A link has come."""
        link.address, link.session_address = address(link.impl), address(link.session_impl)
        self._table = None

    def forget_table(self) -> None:
        """Links are gone: proton may use their addresses again."""
        self._table = None

    def room(self, link: Link, backlog: int) -> int:
        """See `LinkLayer.room`; the link has not ended."""
        room: int = self._native.room(link.address, link.session_address, backlog)
        return room

    def feed(
        self,
        transport: int,
        collector: int,
        data: bytes | memoryview = b"",
        offset: int = 0,
        end: int = 0,
        *,
        flow: bool = True,
    ) -> tuple[bool, int, int | None]:
        """Give bytes of the peer to proton, and handle simple events, until one that is not simple.

        Args:
            transport, collector: their addresses.
            data: the bytes.
            offset, end: which of them, from where to where.
            flow: handle changes of credit; otherwise they are dropped.

        Returns:
            whether an event is left that is not simple, how far the data was used, and what proton returned for bytes
            that it did not take as a whole, or None.
        """
        if self._table is None:
            self._make_table()
        deliveries = self._deliveries
        batches, more, deliveries.next_tag, offset, failure = self._native.feed(
            transport, collector, self._table, self._numbered, data, offset, end, self._limit, flow, deliveries.next_tag
        )
        if batches:
            deliveries.on_batches(batches, self._on_flow)
        return more, offset, failure

    def _make_table(self) -> None:
        # Links are numbered in the order of their addresses: their numbers are their places in the table.
        self._numbered = sorted(self._links.values(), key=_address)
        rows = [(link.address, number, link.flags) for number, link in enumerate(self._numbered)]
        self._table = link_table(rows)
        for place, link in enumerate(self._numbered):
            link.set_row(self._table, place)


def _address(link: Link) -> int:
    return link.address
