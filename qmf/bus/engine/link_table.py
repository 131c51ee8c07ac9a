"""The table of the links of a connection that the compiled functions look at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from qmf.bus.engine.link import Link
from qmf.bus.engine.native import address, link_table


class LinkTable:
    """Made when it is needed, from the links that there are then; see `native.c`."""

    def __init__(self, links: Mapping[Any, Link]) -> None:
        """Prepare the table of an engine's links.

        Args:
            links: of the connection, which owns them.
        """
        self._links = links
        #: None when a link has come or gone since it was made.
        self._rows: bytearray | None = None
        self._numbered: list[Link] = []

    def add(self, link: Link) -> None:
        """A link has come."""
        link.address, link.session_address = address(link.impl), address(link.session_impl)
        self._rows = None

    def clear(self) -> None:
        """Links are gone: proton may use their addresses again."""
        self._rows = None

    def get(self) -> tuple[bytearray, list[Link]]:
        """The table, and the links by their numbers in it."""
        if self._rows is None:
            # Links are numbered in the order of their addresses: their numbers are their places in the table.
            self._numbered = sorted(self._links.values(), key=_address)
            self._rows = link_table([(link.address, number, link.flags) for number, link in enumerate(self._numbered)])
            for place, link in enumerate(self._numbered):
                link.set_row(self._rows, place)
        return self._rows, self._numbered


def _address(link: Link) -> int:
    return link.address
