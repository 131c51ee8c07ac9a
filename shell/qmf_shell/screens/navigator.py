"""What a live screen does, without a terminal: pages on top of each other, their updates, pause, messages, filters.

The thread that loads calls `next_load`; everything else is called on the screen's thread.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

import attrs

from qmf.errors import QmfError
from qmf.views.cells import Instant
from qmf.views.formatting import Formatter
from qmf.views.text import clean, one_line
from qmf_shell.screens.fixed import ColumnsPage, HelpPage, SortPage, TextPage
from qmf_shell.screens.rows import ScreenColumn
from qmf_shell.screens.state import BACK, FilterError, Page
from qmf_shell.screens.thresholds import limits_of_text
from qmf_shell.session.context import Context

logger = logging.getLogger("qmf.shell")

#: What the last line names, the most important first.
_KEYS = (
    ("q", "leave"),
    ("?", "help"),
    ("Enter", "open"),
    ("Esc", "back"),
    ("/", "filter"),
    ("s", "sort"),
    ("c", "columns"),
    ("r", "rates"),
    ("Space", "pause"),
    ("S", "reverse"),
    ("Tab", "next tab"),
    ("a", "own things"),
    ("x", "clear gone"),
)

#: Those that a page to choose from does not have.
_KEYS_OF_ROWS = ("s", "c", "S", "x")
#: Those that a page without rows has.
_KEYS_OF_FRAMES = ("q", "?", "Space")


@attrs.frozen(eq=False)
class Loaded:
    """What the loading of a page brought.

    Attributes:
        page: the page.
        news: what `Page.load` returned.
        error: why there is nothing; empty if there is.
    """

    page: Page
    news: object = None
    error: str = ""


class Navigator:
    """Pages on top of each other.

    Attributes:
        paused: updates wait until it is not.
        message: an answer to the last key; empty for none.
    """

    def __init__(self, context: Context, page: Page) -> None:
        self._context = context
        self._pages = [page]
        self._waiting: list[Loaded] = []
        self._errors: dict[int, str] = {}
        self._updated = 0
        self.paused = False
        self.message = ""

    # -- pages

    @property
    def page(self) -> Page:
        """The page that is shown."""
        return self._pages[-1]

    @property
    def trail(self) -> Sequence[str]:
        """The titles of the pages below it."""
        return [item.title for item in self._pages[:-1]]

    @property
    def last_page(self) -> Page:
        """The page that stays on the terminal after the screen is left: not the help or a list to choose from."""
        return next((item for item in reversed(self._pages) if item.changes), self._pages[-1])

    def push(self, page: Page) -> None:
        """Show another page on top."""
        self._pages.append(page)

    def back(self) -> bool:
        """Show the page below; False if there is none. A filter is removed first."""
        page = self.page
        if page.model.filter:
            page.model.set_filter("", None)
            return True
        if len(self._pages) == 1:
            return False
        self._pages.pop()
        self._close(page)
        return True

    def open(self) -> None:
        """Open the page about the row at the cursor."""
        row = self.page.model.current
        if row is None:
            return
        found = self.page.open(row)
        if found is BACK:
            self.back()
        elif isinstance(found, Page):
            self.push(found)
        else:
            self.message = "there is nothing more to see here"

    def tab(self, step: int = 1, number: int | None = None) -> None:
        """Show the next page about the same thing, or the one with a number."""
        tabs = self.page.tabs
        if not tabs:
            return
        at = next(place for place, (_, item) in enumerate(tabs) if item is self.page)
        wanted = (at + step) % len(tabs) if number is None else number
        if 0 <= wanted < len(tabs):
            self._pages[-1] = tabs[wanted][1]

    def close(self) -> None:
        """End all pages."""
        for page in self._pages:
            self._close(page)

    def _close(self, page: Page) -> None:
        for item in [page, *(other for _, other in page.tabs)]:
            item.close()

    # -- updates

    @property
    def loads(self) -> bool:
        """The page that is shown is to be loaded now: always, but while paused only if it has nothing to show yet."""
        return not self.paused or not self.page.loaded

    def load(self, page: Page) -> Loaded:
        """Load a page; on the thread that loads. Errors become text."""
        try:
            return Loaded(page, page.load())
        except QmfError as error:
            return Loaded(page, error=one_line(str(error)))
        except Exception as error:
            # A bug must not end the screen; --verbose shows where it is.
            logger.debug("internal error in %s", page.title, exc_info=True)
            return Loaded(page, error=f"internal error: {type(error).__name__}: {error}")

    def on_loaded(self, loaded: Loaded) -> None:
        """Take over what was loaded; while paused, later."""
        page = loaded.page
        if self.paused and page.loaded:
            self._waiting.append(loaded)
            return
        self._errors.pop(id(page), None)
        if loaded.error:
            self._errors[id(page)] = loaded.error
            return
        if loaded.news is not None:
            page.apply(loaded.news)
        page.loaded = True
        self._updated = time.time_ns()

    def pause(self) -> None:
        """Pause, or go on."""
        self.paused = not self.paused
        if not self.paused:
            waiting, self._waiting = self._waiting, []
            for item in waiting:
                self.on_loaded(item)

    # -- what the user does

    def toggle(self) -> None:
        """Choose the row at the cursor where rows are chosen; elsewhere pause."""
        row = self.page.model.current
        if not self.page.chooses:
            self.pause()
        elif row is not None:
            self.page.toggle(row)

    def filter(self, text: str) -> None:
        """Filter the rows by what was typed; what is not valid becomes a message, and the filter stays as it was."""
        self.message = ""
        model = self.page.model
        if not text.strip():
            model.set_filter("", None)
            return
        try:
            model.set_filter(text, self.page.test_of(text))
        except FilterError as error:
            self.message = one_line(str(error))

    def rates(self) -> None:
        """Show totals, rates or both."""
        shown = self.page.next_rates() if self.page.can_show_rates else ""
        self.message = f"showing {shown}" if shown else "there are no counters here"

    def toggle_own(self) -> None:
        """Show what agents and consoles create for themselves, or leave it out."""
        shown = self.page.toggle_own()
        if shown is None:
            self.message = "there is nothing here that agents and consoles create for themselves"
        else:
            self.message = f"{'with' if shown else 'without'} what agents and consoles create for themselves"

    @property
    def threshold_column(self) -> ScreenColumn | None:
        """The column whose thresholds can be set: the one that sorts, if it has numbers."""
        column = self.page.model.column(self.page.model.sort)
        return column if column is not None and column.right and column.name and not column.rate else None

    def set_thresholds(self, text: str) -> None:
        """Set the thresholds of the column that sorts."""
        column = self.threshold_column
        if column is None:
            return
        limits = limits_of_text(text)
        if limits is None:
            self.message = f"{text!r} is not one number or two, e.g. 1000 10k"
            return
        self.page.set_thresholds(column.key, limits)
        self.message = f"{clean(column.title)}: " + (" and ".join(f"{item:g}" for item in limits) or "no thresholds")

    def choose_columns(self) -> None:
        """Open the list of columns."""
        if not self.page.chooses:
            self.push(ColumnsPage(self._context, self.page))

    def choose_sort(self) -> None:
        """Open the list of columns to sort by."""
        if not self.page.chooses:
            self.push(SortPage(self._context, self.page))

    def help(self) -> None:
        """Open the help."""
        if not isinstance(self.page, HelpPage):
            self.push(HelpPage(self._context))

    # -- what is shown besides the page

    @property
    def keys(self) -> Sequence[tuple[str, str]]:
        """The keys that the last line names."""
        page = self.page
        if page.frame is not None:
            return [item for item in _KEYS if item[0] in _KEYS_OF_FRAMES]
        unused = {
            "Tab": not page.tabs,
            "r": not page.can_show_rates,
            "a": not page.own_left_out,
            "Esc": len(self._pages) == 1 and not page.model.filter,
        }
        keys = [(key, text) for key, text in _KEYS if not unused.get(key)]
        if not page.chooses:
            return keys
        fixed = isinstance(page, HelpPage | TextPage)
        keys = [item for item in keys if item[0] not in _KEYS_OF_ROWS and not (fixed and item[0] == "Space")]
        return [(key, "choose" if key == "Space" else text) for key, text in keys]

    def right(self, formatter: Formatter) -> str:
        """The time of the last update, and the interval, or that it is paused."""
        if not self.page.changes:
            return ""
        at = formatter.text(Instant(self._updated)) if self._updated else ""
        if self.paused:
            return f"{at}  PAUSED"
        return at if self.page.at_once else f"{at}  every {self.page.interval:g} s"

    def alarm(self, formatter: Formatter) -> tuple[str, str] | None:
        """In place of the keys: a lost connection, an error, or the answer to the last key."""
        lost = [item for item in self._context.backend.statuses if not item.connected]
        since = f"; values of {formatter.text(Instant(self._updated))}" if self._updated else ""
        if lost:
            reason = f": {lost[0].reason}" if lost[0].reason else ""
            return "class:bad", one_line(f"no connection to {lost[0].url}{reason}; it is retried{since}")
        if self.message:
            return "class:message", self.message
        error = self._errors.get(id(self.page))
        if error is not None:
            return "class:bad", f"{error}{since}"
        note = next((item for item in self.page.notes), None)
        return None if note is None else ("class:bad" if note.bad else "class:message", note.text)
