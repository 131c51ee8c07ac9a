"""The search for agents: whether the answers to a locate request are complete.

No message marks the end of the answers (QMF2.md 4.2), so a search is over when no answer came for some time. That time
begins again with each answer, and grows with the number of agents: thousands answer with longer pauses than ten. If the
connected broker says how many agents there are, the search waits longer for those that are missing.

A broker that cannot be asked leaves it open whether a pause is the end, or whether the broker or the agents are busy:
thousands of agents of one process pause for seconds. So some of the agents that are known are asked again, each by
itself (a probe). What was sent before these requests is mostly handled before them, and so a search goes on until they
are answered, and for some time after that.

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

#: Longest time without an answer, of probes as well: bindings of programs that are no agents, and agents that were
#: killed, must not delay every console.
LONGEST_QUIET = 5.0

#: Wait for the first agent so many times as long as the broker took to accept the request, or its own agent to answer:
#: a broker that is slow to do so is slow to deliver, as when thousands of queues get the request.
BROKER_FACTOR = 20.0

#: Shortest time to wait for other agents than those inside brokers, in seconds, when these cannot be asked.
OTHERS_QUIET = 0.5

#: How many agents a probe asks.
PROBED = 8


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
        #: Agents that answered, and whether they are inside a broker; those that announced themselves meanwhile,
        #: unasked, and did not answer.
        self._answered: dict[str, bool] = {}
        self._started: dict[str, None] = {}
        #: How many of those that answered are inside brokers: their answers say nothing of other agents.
        self._in_brokers = 0
        #: The agents of the last probe that have not answered it; when it was sent, and when it was answered.
        self._unanswered: set[str] = set()
        self._probed: float | None = None
        self._confirmed: float | None = None

    @property
    def found(self) -> int:
        """How many agents have answered; with those that announced themselves meanwhile, once one has."""
        return len(self._answered) + len(self._started) if self._answered else 0

    def begin(self, now: float, limit: float) -> None:
        """A locate request is sent; wait `limit` seconds for the first answer at most."""
        self.running = True
        self.expected = None
        self.asking = False
        self._limit = limit
        self._began = self._last = now
        self._first = 0.0
        self._answered.clear()
        self._started.clear()
        self._in_brokers = 0
        self._forget_probe()

    def on_accepted(self, now: float) -> None:
        """The broker accepted the locate request: agents have had no chance to answer before."""
        if self.running and not self._answered:
            self._limit = max(self._limit, min(BROKER_FACTOR * (now - self._began), LONGEST_QUIET))
            self._began = self._last = now

    def on_answer(self, name: str, now: float, *, is_new: bool, in_broker: bool = False) -> None:
        """An agent answered.

        Args:
            name: of the agent.
            now: the time.
            is_new: it was not known: after the end of a search this shows that it ended too early.
            in_broker: it is the agent of a broker.
        """
        if not (self.running or is_new):
            return
        self.running = True
        if not self._answered:
            self._first = now - self._began
        if name not in self._answered:
            self._started.pop(name, None)
            self._answered[name] = in_broker
            self._in_brokers += in_broker
            self._last = now
            if self._confirmed is not None:
                self._forget_probe()
        self._probe_answered(name, now)

    def on_agent_started(self, name: str) -> None:
        """An agent announced itself unasked: it may have been started just now, so this doesn't extend the search."""
        if self.running and name not in self._answered:
            self._started[name] = None

    def on_agent_removed(self, name: str, now: float) -> None:
        """An agent is gone, and answers no more."""
        if self.running:
            self._in_brokers -= self._answered.pop(name, False)
            self._started.pop(name, None)
            self._probe_answered(name, now)

    def end(self) -> None:
        """The answers are complete, or none will come any more."""
        self.running = False
        self._forget_probe()

    @property
    def due(self) -> float:
        """The time at which the search is over or wants a probe, unless another answer comes before."""
        if self._probed is None:
            return self._quiet_until - (QUIET / 2 if self._has_others and self._is_open else 0.0)
        if self._confirmed is None:
            return max(self._probed + LONGEST_QUIET, self._quiet_until)
        # Others may be answered after the agents of the probe: by the same process, or by the same busy broker.
        return max(self._quiet_until, self._confirmed + max(QUIET / 2, self._confirmed - self._probed))

    @property
    def wants_probe(self) -> bool:
        """Whether, at `due`, agents are asked again before the search may end."""
        if not self._is_open or not (self._has_others or self._started):
            return False
        # A probe that some agent never answers says nothing of those that answered the locate request after it.
        return self._probed is None or (self._confirmed is None and self._last > self._probed)

    def probe(self, now: float) -> list[str]:
        """Begin a probe.

        Returns:
            the agents to ask: some that have yet to answer, the last one that did, and some before it.
        """
        silent = list(self._started)[-PROBED // 2 :]
        answered = [name for name, in_broker in self._answered.items() if not in_broker]
        wanted = min(PROBED - len(silent), len(answered))
        self._unanswered = {*silent, *(answered[-1 - len(answered) * number // wanted] for number in range(wanted))}
        self._probed, self._confirmed = now, None
        return sorted(self._unanswered)

    @property
    def _has_others(self) -> bool:
        """Agents have answered that are not inside brokers."""
        return len(self._answered) > self._in_brokers

    @property
    def _is_open(self) -> bool:
        """Nobody said how many agents there are."""
        return self.expected is None and not self.asking

    @property
    def _quiet_until(self) -> float:
        """The end of the time without an answer."""
        if not self._answered:
            return self._began + self._limit
        quiet = max(self._first, QUIET)
        if self.asking:
            quiet = max(quiet, self._limit)
        elif self.expected is None:
            quiet = max(quiet, self.found * QUIET_PER_AGENT)
            if not self._has_others:
                quiet = max(quiet, OTHERS_QUIET, BROKER_FACTOR * self._first)
        elif self.found < self.expected:
            quiet = max(quiet, MISSING_QUIET, self.expected * MISSING_QUIET_PER_AGENT)
        return self._last + min(quiet, LONGEST_QUIET)

    def _probe_answered(self, name: str, now: float) -> None:
        if self._probed is None or name not in self._unanswered:
            return
        self._unanswered.remove(name)
        if self._unanswered:
            return
        self._confirmed = now
        if self._last > self._probed:
            self._forget_probe()  # it was sent before the last answer, so it says nothing of those to come

    def _forget_probe(self) -> None:
        self._unanswered = set()
        self._probed = self._confirmed = None
