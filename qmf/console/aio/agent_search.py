"""The search for agents: whether the answers to a locate request are complete.

No message marks the end of the answers (QMF2.md 4.2), so a search is over when no answer came for some time. That time
begins again with each answer, and grows with the number of agents: thousands answer with longer pauses than ten. If the
connected broker says how many agents there are, the search waits longer for those that are missing.

A search has no clock: the time is an argument, in seconds of any clock. `AgentTracker` gives it one.
"""

from __future__ import annotations

from qmf.errors import RequestTimeout

#: Key of `StillFindingAgents` in the failures of a request to all agents; no agent has this name.
ALL_AGENTS = "*"

#: Shortest time without an answer, in seconds, after which a search is over.
QUIET = 0.05

#: Seconds per agent that has answered, if that is more.
QUIET_PER_AGENT = 0.0005

#: Shortest time while agents are missing that the broker knows of; and seconds for each that it knows, if that is more.
MISSING_QUIET = 0.25
MISSING_QUIET_PER_AGENT = 0.001

#: Longest time without an answer: bindings of programs that are no agents must not delay every console.
LONGEST_QUIET = 5.0


class StillFindingAgents(RequestTimeout):
    """A request to all agents was sent to some of them only, because others had not announced themselves yet.

    Not raised: it is among the failures of the request, under the name ``*``.

    Attributes:
        found: how many agents had announced themselves.
        expected: how many there are, as far as the broker knows; None when it did not say.
    """

    def __init__(self, found: int, expected: int | None) -> None:
        self.found = found
        self.expected = expected
        super().__init__("locate request", None, 0.0)

    def __str__(self) -> str:
        of = f" of {self.expected:,}" if self.expected is not None and self.expected > self.found else ""
        return f"still finding agents: {self.found:,}{of} so far"


class AgentSearch:
    """One search after the other.

    Attributes:
        running: True from `begin` until `end`; answers may be missing.
        expected: how many agents there are, as far as the broker knows; None when it did not say.
        asking: True while the broker is asked for that number.
    """

    def __init__(self) -> None:
        self.running = False
        self.expected: int | None = None
        self.asking = False
        self._limit = 0.0
        self._began = self._last = 0.0
        self._first = 0.0
        self._answered: set[str] = set()

    @property
    def found(self) -> int:
        """How many agents have answered."""
        return len(self._answered)

    def begin(self, now: float, limit: float) -> None:
        """A locate request is sent; wait `limit` seconds for the first answer at most."""
        self.running = True
        self.expected = None
        self.asking = False
        self._limit = limit
        self._began = self._last = now
        self._first = 0.0
        self._answered.clear()

    def answered(self, name: str, now: float, *, is_new: bool) -> None:
        """An agent answered. One that was not known, after the end of a search, shows that it ended too early."""
        if not (self.running or is_new):
            return
        if not self._answered:
            self._first = now - self._began
        self._answered.add(name)
        self._last = now
        self.running = True

    def started(self, name: str) -> None:
        """An agent announced itself unasked: it may have been started just now, so this doesn't extend the search."""
        if self.running and self._answered:
            self._answered.add(name)

    def end(self) -> None:
        """The answers are complete, or none will come any more."""
        self.running = False

    @property
    def due(self) -> float:
        """The time at which the search is over, unless another answer comes before."""
        if not self._answered:
            return self._began + self._limit
        quiet = max(self._first, QUIET)
        if self.asking:
            quiet = max(quiet, self._limit)
        elif self.expected is None:
            quiet = max(quiet, self.found * QUIET_PER_AGENT)
        elif self.found < self.expected:
            quiet = max(quiet, MISSING_QUIET, self.expected * MISSING_QUIET_PER_AGENT)
        return self._last + min(quiet, LONGEST_QUIET)
