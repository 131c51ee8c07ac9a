"""`PageState`: what the pages show to all who may read the same."""

from __future__ import annotations

from typing import Self

import attrs

from qmf.views.events import EventView, LostEvents
from qmf.web.consoles import WebConsole
from qmf.web.pages.live.shared_state import SharedState
from qmf.web.pages.views.object_table import ClassTables
from qmf.web.readers.readable_console import ReadableConsole


@attrs.frozen(eq=False)
class PageState:
    """The parts.

    Attributes:
        state: what the bus is like.
        tables: of classes.
    """

    state: SharedState
    tables: ClassTables

    @classmethod
    def on(cls, console: WebConsole, interval: float) -> Self:
        """A state that is not started yet, with so many seconds between updates."""
        state = SharedState(console, interval)
        return cls(state, ClassTables(state))

    def for_reader(self, console: ReadableConsole) -> PageState:
        """Another one, started, for those who have a console; with the events of this one that they may read."""

        def is_readable(event: EventView) -> bool:
            if isinstance(event, LostEvents):
                return console.sees_agent(event.agent)
            name = event.short_name if event.package else ""
            return console.sees_event(event.package, name, event.agent, event.object_id, event.values.values())

        made = PageState.on(console, self.state.interval)
        made.state.start(self.state.events, is_readable)
        return made

    async def close(self) -> None:
        """End it."""
        await self.state.close()
