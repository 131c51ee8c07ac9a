"""How many messages a broker may send before they are fetched, and when it may send more."""

from __future__ import annotations

from qmf.messaging.constants import Constant

#: Part of the capacity that is left when credit is renewed, unless the program says otherwise.
THRESHOLD = 0.5
#: Credit that stands for a capacity without limit.
MAX_CREDIT = 100_000


class CreditWindow:
    """The window of one receiver. It is set on any thread; what counts messages is for the loop's.

    Attributes:
        capacity: as the program gave it.
        credit: messages that the broker may still send; below 0 if it has sent more.
        taken_back: credit that was taken back, and that the broker may have used before it knew.
        low: when so many messages are left to come or to be fetched, and nobody waits, the broker may send more.
    """

    __slots__ = ("_size", "_threshold", "capacity", "credit", "low", "taken_back")

    def __init__(self, capacity: int | Constant) -> None:
        self.clear()
        self._threshold = THRESHOLD
        self.resize(capacity)

    def clear(self) -> None:
        """There is no credit any more: the link is gone, or was drained."""
        self.credit = self.taken_back = 0

    def resize(self, capacity: int | Constant) -> None:
        """Set the capacity."""
        self.capacity = capacity
        self._size = MAX_CREDIT if isinstance(capacity, Constant) else capacity
        self.low = self._threshold * self._size

    @property
    def threshold(self) -> float:
        """Part of the capacity: when so many messages are left to come or to be fetched, the broker may send more."""
        return self._threshold

    @threshold.setter
    def threshold(self, value: float) -> None:
        if not 0 <= value <= 1:
            raise ValueError(f"the threshold of a receiver is a part of its capacity, 0 to 1, not {value!r}")
        self._threshold = value
        self.low = value * self._size

    def limit(self, waiting: int) -> int:
        """Messages that the broker may have sent and that are not fetched.

        Args:
            waiting: calls of `fetch` that wait. As many messages are as good as fetched when they arrive: the capacity
                is for those behind them.
        """
        return self._size + waiting

    def due(self, arrived: int, waiting: int) -> int:
        """Credit to give: what is missing, once no more than the threshold is left, else 0.

        Args:
            arrived: messages that can be fetched.
            waiting: as of `limit`.
        """
        limit = self._size + waiting
        used = self.credit + arrived
        return limit - used if used <= self._threshold * limit else 0

    def count_used_late(self) -> int:
        """How many messages came for credit that had been taken back; the same ones are counted once.

        RabbitMQ sends more than it may without that: such messages are kept.
        """
        used = min(max(-self.credit, 0), self.taken_back)
        self.taken_back -= used
        return used

    def missing(self, arrived: int, waiting: int) -> int:
        """Credit up to the limit, below 0 if there is too much; arguments as of `due`."""
        return self._size + waiting - self.credit - arrived
