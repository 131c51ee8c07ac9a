"""The table of the links of a connection that the compiled functions look at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from qmf.bus.engine.link import Link
from qmf.bus.engine.native import address, link_table


class LinkTable:
    """Made when it is needed, from the links that there are then; see `native.c`.

    Attributes:
        rows: the table; None when a link has come or gone since it was made.
        numbered: the links by their numbers in it.
    """

    def __init__(self, links: Mapping[Any, Link]) -> None:
        """Prepare the table of an engine's links.

        Args:
            links: of the connection, which owns them.
        """
        self._links = links
        self.rows: bytearray | None = None
        self.numbered: list[Link] = []

    def add(self, link: Link) -> None:
        """A link has come."""
        link.address, link.session_address = address(link.impl), address(link.session_impl)
        self.rows = None

    def clear(self) -> None:
        """Links are gone: proton may use their addresses again."""
        self.rows = None

    def get(self) -> tuple[bytearray, list[Link]]:
        """The table, and the links by their numbers in it."""
        if self.rows is None:
            # Links are numbered in the order of their addresses: their numbers are their places in the table.
            self.numbered = sorted(self._links.values(), key=_address)
            self.rows = link_table([(link.address, number, link.flags) for number, link in enumerate(self.numbered)])
            for place, link in enumerate(self.numbered):
                link.set_row(self.rows, place)
        return self.rows, self.numbered


def _address(link: Link) -> int:
    return link.address
