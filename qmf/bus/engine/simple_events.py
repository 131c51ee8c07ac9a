"""Events that the compiled functions handle: messages that arrive whole, messages that are accepted, credit."""

from __future__ import annotations

from collections.abc import Callable

from qmf.bus.engine.deliveries import Deliveries
from qmf.bus.engine.link_table import LinkTable
from qmf.bus.engine.native import ALL_FLOW, LOUD_FLOW, Native


class SimpleEvents:
    """The simple events of one engine.

    Attributes:
        output: takes bytes for the peer; see `native.c`. Called with the addresses of transport and collector, how
            many bytes to take at most, or a frame more, and the address of the walker of sent frames; returns the
            bytes, whether an event is left, and whether the bytes have to be walked.
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
        self.output: Callable[[int, int, int, int], tuple[bytes, bool, bool]] = native.output
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
        flow: int = ALL_FLOW,
    ) -> tuple[bool, int, int | None]:
        """Give bytes of the peer to proton, and handle simple events, until one that is not simple.

        Args:
            transport, collector: their addresses.
            data: the bytes.
            offset, end: which of them, from where to where.
            flow: `NO_FLOW` drops changes of credit, `LOUD_FLOW` those of quiet links, `ALL_FLOW` none.

        Returns:
            whether an event is left that is not simple, how far the data was used, and what proton returned for bytes
            that it did not take as a whole, or None.
        """
        rows, numbered = self._table.get()
        deliveries = self._deliveries
        batches, more, deliveries.next_tag, offset, failure, _ = self._native.feed(
            transport, collector, rows, numbered, data, offset, end, self._limit, flow, deliveries.next_tag, 0
        )
        if batches:
            deliveries.on_batches(batches)
        return more, offset, failure

    def read(
        self, transport: int, collector: int, data: bytes | memoryview, walker: int
    ) -> tuple[bool, int, int | None, bool] | None:
        """`feed` of a whole read, unless the engine has to know of one of its frames: None, and nothing is done.

        Besides what that returns, it is whether all was read, and proton has nothing to write for that.

        Messages and acceptances go to the owner of their link at once (`Link.direct`), not by events.

        Args:
            transport, collector, data: as of `feed`.
            walker: address of that of received frames.
        """
        rows, numbered = self._table.get()
        deliveries, size = self._deliveries, len(data)
        found = self._native.feed(
            transport, collector, rows, numbered, data, 0, size, self._limit, LOUD_FLOW, deliveries.next_tag, walker
        )
        if found is None:
            return None
        batches, more, deliveries.next_tag, offset, failure, idle = found
        if batches:
            deliveries.on_batches(batches, direct=True)
        return more, offset, failure, idle
