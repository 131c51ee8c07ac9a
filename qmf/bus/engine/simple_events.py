"""Events that the compiled functions handle: messages that arrive whole, messages that are accepted, credit."""

from __future__ import annotations

from collections.abc import Callable

from qmf.bus.engine.deliveries import Deliveries
from qmf.bus.engine.link_table import LinkTable
from qmf.bus.engine.native import Native


class SimpleEvents:
    """The simple events of one engine.

    Attributes:
        output: takes bytes for the peer; see `native.c`. Called with the addresses of transport and collector, and how
            many bytes to take at most, or a frame more; returns the bytes, and whether an event is left.
    """

    def __init__(self, native: Native, table: LinkTable, limit: int, deliveries: Deliveries) -> None:
        """Prepare the handling of an engine's simple events.

        Args:
            native: the compiled functions.
            table: of the links.
            limit: bytes of the largest message that is accepted.
            deliveries: of the engine: they handle what was read.
        """
        self._native = native
        self.output: Callable[[int, int, int], tuple[bytes, bool]] = native.output
        self._table = table
        self._limit = limit
        self._deliveries = deliveries

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
        rows, numbered = self._table.get()
        deliveries = self._deliveries
        batches, more, deliveries.next_tag, offset, failure = self._native.feed(
            transport, collector, rows, numbered, data, offset, end, self._limit, flow, deliveries.next_tag
        )
        if batches:
            deliveries.on_batches(batches)
        return more, offset, failure
