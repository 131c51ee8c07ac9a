"""The states of a link to another broker, as a table; with the reason and the time of each. No I/O.

::

    CONNECTING --up--> OPERATIONAL --lose--> WAITING --up--> OPERATIONAL
        |                                      ^ |
        '------------- lose -------------------' '--lose--> WAITING, for another reason

While it is WAITING it is tried again, with growing waits in between. FAILED: it is not, since this broker has no node
for it any more, or does not allow what it does. CLOSED: it was deleted, or the broker ends. The values are the words
that qpidd has for states of links.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator

from qmf._state_table import StateTable
from qmf.bus.backoff import Backoff

#: Seconds after which a link that was up counts as stable: the waits begin with the shortest one again.
STABLE = 10.0
#: Seconds within which a link that was stable is tried again: at once, but not with all others in the same moment.
AT_ONCE = 0.1
#: The waits behind that. They are short, and little of each is random: a link is back soon after the other broker is. A
#: thousand links to one that is gone ask for 200 connections a second.
LINK_BACKOFF = Backoff(first=0.25, limit=5.0, jitter=0.25)


class PeerLinkState(enum.Enum):
    """State of a link."""

    CONNECTING = "Connecting"
    OPERATIONAL = "Operational"
    WAITING = "Waiting"
    FAILED = "Failed"
    CLOSED = "Closed"


class PeerLinkTrigger(enum.Enum):
    """What changes the state of a link."""

    UP = "up"  #: the other broker has granted it
    LOSE = "lose"  #: it could not be made, or is gone; it is tried again
    FAIL = "fail"  #: it cannot go on
    CLOSE = "close"


_State, _Trigger = PeerLinkState, PeerLinkTrigger

_ENDS = {_Trigger.FAIL: _State.FAILED, _Trigger.CLOSE: _State.CLOSED}

TRANSITIONS = StateTable(
    "the link",
    {
        _State.CONNECTING: {**_ENDS, _Trigger.UP: _State.OPERATIONAL, _Trigger.LOSE: _State.WAITING},
        _State.OPERATIONAL: {**_ENDS, _Trigger.LOSE: _State.WAITING},
        _State.WAITING: {**_ENDS, _Trigger.UP: _State.OPERATIONAL, _Trigger.LOSE: _State.WAITING},
        _State.FAILED: {_Trigger.CLOSE: _State.CLOSED},
        _State.CLOSED: {},
    },
)


class LinkStatus:
    """How a link is.

    Attributes:
        state: of the link.
        reason: why it is not up; empty if it is, or was not tried yet.
        since: when it came into this state, or had another reason, in seconds since 1970.
        losses: times that it was up and then was not.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        """Make the status of a link that was not tried yet; `clock`: the time of day."""
        self.state = PeerLinkState.CONNECTING
        self.reason = ""
        self.since = clock()
        self.losses = 0
        self._clock = clock

    @property
    def ended(self) -> bool:
        """It is not tried any more."""
        return self.state in (PeerLinkState.FAILED, PeerLinkState.CLOSED)

    def change(self, trigger: PeerLinkTrigger, reason: str = "") -> bool:
        """The state changes.

        Args:
            reason: why it is not up then.

        Returns:
            False if neither the state nor the reason is another one now.
        """
        state = TRANSITIONS.next(self.state, trigger)
        if (state, reason) == (self.state, self.reason):
            return False
        if self.state is PeerLinkState.OPERATIONAL and state in (PeerLinkState.WAITING, PeerLinkState.FAILED):
            self.losses += 1
        self.state, self.reason, self.since = state, reason, self._clock()
        return True


class RetryWaits:
    """The waits before a link is tried again: none at first, then they grow, also over losses, until it was stable."""

    def __init__(self, backoff: Backoff, clock: Callable[[], float]) -> None:
        """Make the waits of a link.

        Args:
            backoff: the waits behind the first one.
            clock: any, in seconds.
        """
        self._backoff = backoff
        self._clock = clock
        self._waits = self._begin()
        self._up_at: float | None = None

    def on_up(self) -> None:
        """The link is up."""
        self._up_at = self._clock()

    def after(self, lost: bool) -> Iterator[float]:
        """The waits from now on.

        Args:
            lost: the link was up; otherwise it is tried for the first time.
        """
        if lost and self._up_at is not None and self._clock() - self._up_at >= STABLE:
            self._waits = self._begin()
        if not lost:
            next(self._waits)
            yield 0.0
        while True:  # a `yield from` would end the waits with this generator
            yield next(self._waits)

    def _begin(self) -> Iterator[float]:
        yield AT_ONCE * self._backoff.random()
        yield from self._backoff.delays()
