"""The clock of the agents present: it removes those that are silent, and ends the searches for agents."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from qmf.console.aio.agent_search import QUIET, AgentSearch, StillFindingAgents
from qmf.console.aio.agents import AgentChange, AgentChangeKind, AgentRegistry
from qmf.protocol import AgentInfo


class AgentTracker:
    """Keeps an `AgentRegistry` up to date and reports its changes; searches for agents.

    Attributes:
        agents: the agents present.
        search: the search that runs, or the last one.
    """

    def __init__(
        self,
        on_change: Callable[[AgentChange], None],
        on_found: Callable[[], None] = lambda: None,
        on_probe: Callable[[list[str]], None] = lambda _names: None,
        *,
        ageing: bool,
        timeout: float = 10.0,
    ) -> None:
        """Make a tracker without agents.

        Args:
            on_change: called with each change of an agent.
            on_found: called at the end of each search.
            on_probe: called with the names of agents that are to be asked again before a search ends.
            ageing: remove agents that are silent.
            timeout: seconds that `settle` waits at most, however many agents answer.
        """
        self.agents = AgentRegistry()
        self.search = AgentSearch()
        self._on_change = on_change
        self._on_found = on_found
        self._on_probe = on_probe
        self._ageing = ageing
        self._timeout = timeout
        self._timer: asyncio.TimerHandle | None = None
        self._search_timer: asyncio.TimerHandle | None = None
        self._search_over = asyncio.Event()
        self._search_over.set()
        #: Names of the agents that announced themselves; one that is only mentioned, by an event, has still to answer.
        self._announced: set[str] = set()

    def on_mention(self, name: str) -> None:
        """A message names an agent as its sender."""
        change = self.agents.on_mention(name, _now())
        if change is not None or self._timer is None:
            self._report(change)

    def on_announcement(self, info: AgentInfo, *, connected: bool = False, located: bool = False) -> None:
        """An agent announced itself.

        Args:
            info: the announcement.
            connected: only the connected broker's agent could.
            located: it answered a locate request.
        """
        now = _now()
        self._report(self.agents.on_announcement(info, now, connected=connected))
        agent = self.agents.get(info.name)
        if agent is None:
            return
        is_new = info.name not in self._announced
        self._announced.add(info.name)
        if located:
            in_broker = agent.is_broker or agent.is_in_broker
            self.search.on_answer(info.name, now, is_new=is_new, in_broker=in_broker)
            self._watch_search()
        elif is_new:
            self.search.on_agent_started(info.name)

    def on_connection_lost(self) -> None:
        """The connection was lost, and with it every agent."""
        self._announced.clear()
        self._end_search()
        for change in self.agents.on_connection_lost(_now()):
            self._report(change)

    def close(self) -> None:
        """Stop the clock."""
        self.search.end()
        self._search_over.set()
        for timer in (self._timer, self._search_timer):
            if timer is not None:
                timer.cancel()
        self._timer = self._search_timer = None

    # -- searching

    @property
    def unfinished(self) -> StillFindingAgents | None:
        """What is said of a request to all agents while agents are still being found; None when they are known."""
        search = self.search
        if not search.running:
            return None
        return StillFindingAgents(search.found, search.expected)

    def begin_search(self, limit: float) -> None:
        """A locate request is sent; without an answer, the search is over after `limit` seconds."""
        self.search.begin(_now(), limit)
        self._search_over.clear()
        self._watch_search()

    def on_accepted(self) -> None:
        """The broker accepted the locate request."""
        self.search.on_accepted(_now())

    def ask_broker(self) -> bool:
        """The connected broker is about to be asked how many agents there are; False when that is not needed."""
        if not self.search.running or self.search.asking or self.search.expected is not None:
            return False
        self.search.asking = True
        return True

    def broker_answered(self, count: int | None) -> None:
        """The broker said how many agents there are; None when it could not."""
        self.search.asking = False
        self.search.expected = count
        self._watch_search()

    async def settle(self, limit: float) -> None:
        """Wait until the search is over, or nothing with a limit of 0; for at most the timeout of the tracker.

        Args:
            limit: that of the search.
        """
        if limit > 0:
            await self.wait_for_search()

    async def wait_for_search(self) -> bool:
        """Wait until no search runs, for at most the timeout of the tracker; False if one still does."""
        try:
            async with asyncio.timeout(self._timeout):
                await self._search_over.wait()
        except TimeoutError:
            return False
        return True

    def _watch_search(self) -> None:
        if not self.search.running:
            return
        self._search_over.clear()
        due = self.search.due
        # Mostly an answer only makes the end later, which the timer finds out when it is due.
        if self._search_timer is None or due < self._search_timer.when():
            self._set_search_timer(due, excused=False)

    def _set_search_timer(self, due: float, *, excused: bool) -> None:
        if self._search_timer is not None:
            self._search_timer.cancel()
        self._search_timer = asyncio.get_running_loop().call_at(due, self._check_search, due, excused)

    def _check_search(self, due: float, excused: bool) -> None:
        """End the search when it is due. A loop that was busy may have answers to read: it gets a chance."""
        self._search_timer = None
        if not self.search.running:
            return
        now, later = _now(), self.search.due
        late = later <= now and not excused and now - due > QUIET / 5
        if later > now or late:
            self._set_search_timer(max(later, now + QUIET / 5), excused=late)
        elif self.search.wants_probe:
            self._on_probe(self.search.probe(now))
            self._set_search_timer(self.search.due, excused=False)
        else:
            self._end_search()

    def _end_search(self) -> None:
        if self.search.running:
            self.search.end()
            self._search_over.set()
            self._on_found()

    # -- ageing

    def _report(self, change: AgentChange | None) -> None:
        if change is not None:
            if change.kind is AgentChangeKind.REMOVED:
                self._announced.discard(change.agent.name)
                self.search.on_agent_removed(change.agent.name, _now())
                self._watch_search()
            self._on_change(change)
        if self._ageing and self._timer is None:
            self._arm()

    def _arm(self) -> None:
        due = self.agents.next_check()
        if due is not None:
            loop = asyncio.get_running_loop()
            # An agent found later that may be silent for less time is removed at most this much too late.
            self._timer = loop.call_at(min(due, _now() + 5.0) + 0.01, self._check)

    def _check(self) -> None:
        self._timer = None
        for change in self.agents.silent(_now()):
            self._report(change)
        if self._timer is None:
            self._arm()


def _now() -> float:
    return asyncio.get_running_loop().time()
