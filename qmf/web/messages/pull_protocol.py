"""The two protocols of a pull consumer: which link may be posted to now, and what a post to it means. No I/O.

The links that a client gets contain numbers. Each kind of link uses a number for one step only, ever: so a post tells
whether the client is in step with the server, repeats its last step, or is out of step. Numbers of a new consumer begin
with 1. Those of one that is renewed, after a restart of the server or of the consumer's idle timeout, begin with a
number that none of its links had before: the caller provides it, from the clock.

With auto-acknowledge, the pull with number n is answered with a message and the link n + 1; a repeated pull n gets the
same message. A renewed consumer refuses every number that it had before, and names the right one: between the loss of
the server and now a message may have been acknowledged that the client has not seen.

With acknowledgement, the pull n is answered with a message and the link to acknowledge it, n + 1; that one is answered
with the link for the pull n + 1. A renewed consumer takes any number for a pull, since no message that was not
acknowledged is lost by it; but it refuses acknowledgements, since the message has gone back to its node.

Source: HornetQ REST interface, "Consuming Messages via Pull".
"""

from __future__ import annotations

import enum
from typing import Generic, TypeVar

import attrs

from qmf._state_table import StateTable


class ConsumerState(enum.Enum):
    """State of a pull consumer."""

    READY = "ready"
    PULLING = "pulling"
    DELIVERED = "delivered"
    SETTLING = "settling"
    CLOSED = "closed"


class ConsumerTrigger(enum.Enum):
    """What happens to a pull consumer."""

    PULL = "pull"
    CONSUMED = "consumed"
    DELIVERED = "delivered"
    NOTHING = "nothing"
    SETTLE = "settle"
    SETTLED = "settled"
    LOST = "lost"
    CLOSE = "close"


#: The life of a pull consumer, for both protocols::
#:
#:     READY --pull--> PULLING --consumed--> READY         auto-acknowledge: the message counts as acknowledged
#:                        |  \--delivered--> DELIVERED     acknowledged: the client has to say what became of it
#:                        +-----nothing----> READY
#:     DELIVERED --settle--> SETTLING --settled--> READY   the broker knows
#:         |                    |
#:         +-------lost---------+------> READY             the message went back to its node, and comes again
#:     CLOSED: by the client, or since it was idle. Final.
TRANSITIONS: StateTable[ConsumerState, ConsumerTrigger, ConsumerState] = StateTable(
    "the consumer",
    {
        ConsumerState.READY: {
            ConsumerTrigger.PULL: ConsumerState.PULLING,
            ConsumerTrigger.CLOSE: ConsumerState.CLOSED,
        },
        ConsumerState.PULLING: {
            ConsumerTrigger.CONSUMED: ConsumerState.READY,
            ConsumerTrigger.DELIVERED: ConsumerState.DELIVERED,
            ConsumerTrigger.NOTHING: ConsumerState.READY,
            ConsumerTrigger.CLOSE: ConsumerState.CLOSED,
        },
        ConsumerState.DELIVERED: {
            ConsumerTrigger.SETTLE: ConsumerState.SETTLING,
            ConsumerTrigger.LOST: ConsumerState.READY,
            ConsumerTrigger.CLOSE: ConsumerState.CLOSED,
        },
        ConsumerState.SETTLING: {
            ConsumerTrigger.SETTLED: ConsumerState.READY,
            ConsumerTrigger.LOST: ConsumerState.READY,
            ConsumerTrigger.CLOSE: ConsumerState.CLOSED,
        },
        ConsumerState.CLOSED: {ConsumerTrigger.CLOSE: ConsumerState.CLOSED},
    },
)


MessageT = TypeVar("MessageT")


class LinkKind(enum.Enum):
    """What a link of a consumer is for; the name of its header, without ``msg-``."""

    CONSUME_NEXT = "consume-next"
    ACKNOWLEDGE_NEXT = "acknowledge-next"
    ACKNOWLEDGEMENT = "acknowledgement"


@attrs.frozen
class NextStep:
    """The step that the server expects of the client.

    Attributes:
        kind: pull or acknowledge.
        number: in the link.
    """

    kind: LinkKind
    number: int


class Verdict(enum.Enum):
    """What to do with a post."""

    PROCEED = "proceed"  #: fetch a message, or settle it
    REPEAT = "repeat"  #: the same answer as the last time
    REFUSE = "refuse"  #: the client is out of step


class PullProtocol(Generic[MessageT]):
    """The state of one consumer.

    Attributes:
        acknowledged: the client acknowledges each message.
        state: see `qmf.web.messages.pull_protocol`.
        message: the last one, as long as a repeated pull gets it; None if there is none.
    """

    def __init__(self, *, acknowledged: bool, first: int = 1, renewed: bool = False) -> None:
        """Make the state of a consumer that has no message.

        Args:
            acknowledged: the client acknowledges each message.
            first: number of the first pull.
            renewed: a client may have links of an earlier life of this consumer.
        """
        self.acknowledged = acknowledged
        self.state = ConsumerState.READY
        self.message: MessageT | None = None
        self._number = first
        #: Number that the client used for the pull that is going on.
        self._asked = first
        #: Numbers of pulls that are taken for the next one: None for all, which links of an earlier life may have.
        self._also: frozenset[int] | None = None if renewed and acknowledged else frozenset()
        #: Numbers of the pull that got `message`.
        self._pulled: frozenset[int] = frozenset()
        #: What the client said about the last message; None before that.
        self._decision: bool | None = None

    @property
    def next_step(self) -> NextStep:
        """What the client is to do next."""
        if not self.acknowledged:
            return NextStep(LinkKind.CONSUME_NEXT, self._number)
        if self.state in (ConsumerState.DELIVERED, ConsumerState.SETTLING):
            return NextStep(LinkKind.ACKNOWLEDGEMENT, self._number + 1)
        return NextStep(LinkKind.ACKNOWLEDGE_NEXT, self._number)

    def pull(self, number: int) -> Verdict:
        """The client asks for the next message. After PROCEED, `on_fetched` or `nothing` has to follow."""
        if self.message is not None and number in self._pulled:
            return Verdict.REPEAT
        if self.state is not ConsumerState.READY or not self._is_next(number):
            return Verdict.REFUSE
        self._move(ConsumerTrigger.PULL)
        self._asked = number
        return Verdict.PROCEED

    def _is_next(self, number: int) -> bool:
        return number == self._number or self._also is None or number in self._also

    def nothing(self) -> None:
        """There is no message for the pull; the client may ask again with the same number."""
        self._move(ConsumerTrigger.NOTHING)

    def on_fetched(self, message: MessageT) -> None:
        """The message for the pull. With auto-acknowledge, the broker knows already that it is acknowledged."""
        self._move(ConsumerTrigger.DELIVERED if self.acknowledged else ConsumerTrigger.CONSUMED)
        self.message = message
        self._pulled = frozenset((self._asked, self._number))
        self._also = frozenset()
        self._decision = None
        if not self.acknowledged:
            self._number += 1

    def acknowledge(self, number: int, *, accept: bool) -> Verdict:
        """The client says what became of the message. After PROCEED, `on_settled` or `on_lost` has to follow.

        Args:
            number: of the link.
            accept: True: the message was processed; False: it is to go back to its node.
        """
        if self.state is ConsumerState.DELIVERED and number == self._number + 1:
            self._move(ConsumerTrigger.SETTLE)
            self._decision = accept
            return Verdict.PROCEED
        if self.state is ConsumerState.READY and number == self._number and self._decision is accept:
            return Verdict.REPEAT
        return Verdict.REFUSE

    def on_settled(self) -> None:
        """The broker knows what became of the message."""
        self._move(ConsumerTrigger.SETTLED)
        self._forget()

    def on_lost(self) -> None:
        """The message has gone back to its node before it was settled: its connection is gone.

        The number of its acknowledgement is not used again, and a repeated pull gets the next message.
        """
        self._move(ConsumerTrigger.LOST)
        self._also = self._pulled
        self._decision = None
        self._forget()

    def _forget(self) -> None:
        self._number += 1
        self.message = None
        self._pulled = frozenset()

    def close(self) -> None:
        """The consumer ends."""
        self._move(ConsumerTrigger.CLOSE)
        self.message = None

    def _move(self, trigger: ConsumerTrigger) -> None:
        self.state = TRANSITIONS.next(self.state, trigger)
