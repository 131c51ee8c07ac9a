"""What turns the pages of a table: previous, next, and which page it is."""

from __future__ import annotations

from collections.abc import Callable

from nicegui import ui


class Pager:
    """Two buttons, which the keys ``[`` and ``]`` press, with the number of the page between them."""

    def __init__(self, on_turn: Callable[[int], object]) -> None:
        """`on_turn` is called with -1 or 1."""
        self._previous = ui.button("Previous", on_click=lambda: on_turn(-1))
        self._previous.props("flat dense id=qmf-previous no-caps")
        self._number = ui.label().classes("qmf-count")
        self._next = ui.button("Next", on_click=lambda: on_turn(1)).props("flat dense id=qmf-next no-caps")

    def show(self, page: int, pages: int) -> None:
        """Show that this is page `page` of `pages`, from 1."""
        self._number.set_text(f"page {page:,} of {pages:,}")
        self._previous.set_enabled(page > 1)
        self._next.set_enabled(page < pages)
