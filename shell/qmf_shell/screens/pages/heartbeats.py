"""The agents with their heartbeats, one per row; and the heartbeats of one agent."""

from __future__ import annotations

import time
from collections.abc import Callable

from qmf.views.cells import Cell, Duration, Instant
from qmf.views.text import clean, plural
from qmf_shell.objects.heartbeat_states import HeartbeatState, heartbeat_states
from qmf_shell.results.result import Role
from qmf_shell.screens.model import TableModel
from qmf_shell.screens.rows import Mark, Row, ScreenColumn, ThresholdState
from qmf_shell.screens.state import Page
from qmf_shell.session.backend import HeartbeatRecord
from qmf_shell.session.context import Context

#: Heartbeats of an agent that a page keeps at most.
KEPT = 5000


def _seconds(value: float) -> Cell:
    return Duration(round(value * 1e9)) if value else None


def _age(row: Row) -> Cell:
    state: HeartbeatState = row.item
    return Duration(state.age // 100_000_000 * 100_000_000) if state.last else None


def _late(row: Row) -> ThresholdState:
    return {"late": ThresholdState.WARNING, "gone": ThresholdState.CRITICAL}.get(row.item.state, ThresholdState.NORMAL)


def _interval_column(of: Callable[[Row], HeartbeatState | HeartbeatRecord]) -> ScreenColumn:
    desc = "the interval that the agent announces"
    return ScreenColumn(
        "every", "Every", lambda row: _seconds(of(row).interval), lambda row: of(row).interval, right=True, desc=desc
    )


def _clock_column(of: Callable[[Row], HeartbeatRecord | None]) -> ScreenColumn:
    """By how much the agent's clock differs from ours, with the time that the heartbeat took."""

    def difference(row: Row) -> int | None:
        beat = of(row)
        return None if beat is None else beat.timestamp - beat.received

    def cell(row: Row) -> Cell:
        found = difference(row)
        return None if found is None else Duration(found // 1_000_000 * 1_000_000)

    desc = "the agent's clock compared with this one"
    return ScreenColumn("clock", "Clock", cell, difference, right=True, desc=desc)


_AGENTS = (
    ScreenColumn("agent", "Agent", lambda row: row.item.agent, role=Role.NAME, fixed=True),
    ScreenColumn("state", "State", lambda row: row.item.state, role=Role.SEVERITY),
    ScreenColumn(
        "ago", "Ago", _age, lambda row: row.item.age, right=True, level=_late, desc="since the last heartbeat"
    ),
    _interval_column(lambda row: row.item),
    ScreenColumn("seen", "Seen", lambda row: row.item.count, right=True, desc="how many"),
    _clock_column(lambda row: row.item.last),
    ScreenColumn(
        "last",
        "Last",
        lambda row: Instant(row.item.last.received) if row.item.last else None,
        lambda row: row.item.last.received if row.item.last else None,
        Role.TIME,
        desc="when the last heartbeat came",
    ),
    ScreenColumn("broker", "Broker", lambda row: row.item.broker, role=Role.FAINT, spare=True),
)
_BEATS = (
    ScreenColumn("time", "Time", lambda row: Instant(row.item[0].received), lambda row: row.key, Role.TIME, fixed=True),
    ScreenColumn(
        "after",
        "After",
        lambda row: None if row.item[1] is None else Duration(row.item[1] // 1_000_000 * 1_000_000),
        lambda row: row.item[1],
        right=True,
        level=lambda row: _gap(row.item),
        desc="since the heartbeat before",
    ),
    _interval_column(lambda row: row.item[0]),
    _clock_column(lambda row: row.item[0]),
)


def _gap(item: tuple[HeartbeatRecord, int | None]) -> ThresholdState:
    beat, gap = item
    return (
        ThresholdState.WARNING
        if gap is not None and beat.interval and gap > beat.interval * 1.5e9
        else ThresholdState.NORMAL
    )


class HeartbeatsPage(Page):
    """The agents."""

    empty = "No agent has answered yet."

    def __init__(
        self, context: Context, wanted: str, interval: float, open_agent: Callable[[HeartbeatState], Page]
    ) -> None:
        """Make the page, which is not loaded yet; `wanted`: only agents whose name contains this, in lower case."""
        super().__init__(context, "heartbeats", TableModel(_AGENTS), interval)
        self._wanted = wanted
        self._open_agent = open_agent

    def load(self) -> object:
        return heartbeat_states(self.context, list(self.context.backend.agents()), self._wanted)

    def apply(self, news: object) -> None:
        assert isinstance(news, list)
        rows = []
        for state in news:
            key = state.agent, state.broker
            row = self.model.row(key) or Row(key, state, order=key, search=state.agent.lower())
            row.item = state
            row.mark = Mark.LOST if state.state == "gone" else Mark.NONE
            rows.append(row)
        self.model.replace(rows)
        self.loaded = True

    def open(self, row: Row) -> Page | object | None:
        return self._open_agent(row.item)

    @property
    def summary(self) -> str:
        bad = sum(row.item.state in ("late", "gone") for row in self.model.rows)
        text = plural(len(self.model), "agent")
        return f"{text}, {bad} late or gone" if bad else text


class AgentBeatsPage(Page):
    """The heartbeats of one agent, the latest first."""

    empty = "No heartbeat yet."
    at_once = True

    def __init__(self, context: Context, agent: str, broker: str, interval: float) -> None:
        """Make the page of an agent; `agent`, `broker`: name of the agent, and URL of its broker."""
        super().__init__(context, clean(agent), TableModel(_BEATS, sort="time", descending=True), interval)
        self._wanted = agent, broker
        self._seen = 0
        self._last: HeartbeatRecord | None = None

    def load(self) -> object:
        items, self._seen = self.context.heartbeats.since(self._seen)
        return [item for item in items if (item.agent, item.broker) == self._wanted]

    def apply(self, news: object) -> None:
        assert isinstance(news, list)
        rows = []
        for item in news:
            gap = None if self._last is None else item.received - self._last.received
            self._last = item
            rows.append(Row(item.received, (item, gap), order=item.received, search=time.ctime(item.received / 1e9)))
        self.model.put(rows)
        if len(self.model) > KEPT:
            self.model.remove(sorted(row.key for row in self.model.rows)[: len(self.model) - KEPT])  # type: ignore[type-var]
        self.loaded = True

    @property
    def summary(self) -> str:
        return plural(len(self.model), "heartbeat")
