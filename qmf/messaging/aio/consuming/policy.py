"""What a consumer does with messages that its handler cannot process."""

from __future__ import annotations

import enum

import attrs

from qmf.messaging.exceptions import MessagingError
from qmf.messaging.message import Message


class RejectMessage(MessagingError):
    """Raised by a handler: the message is given up without another attempt: ``RejectMessage(text="no item")``."""


class TooManyDeliveries(RejectMessage):
    """Not raised by handlers: the broker has delivered the message too often; it is given up without its handler."""

    @property
    def deliveries(self) -> int:
        """How often before this time."""
        value = self.info.get("deliveries")
        return value if isinstance(value, int) else 0


class RetryLater(MessagingError):
    """Raised by a handler: not now; ``RetryLater(text="the shop is closed", delay=300)`` with the seconds until then.

    It counts as an attempt. Without a delay it is that of the policy.
    """

    @property
    def delay(self) -> float | None:
        """Seconds until the next attempt, or None."""
        value = self.info.get("delay")
        return float(value) if isinstance(value, int | float) else None


@attrs.frozen
class Retry:
    """When a message is tried again after its handler has failed.

    Attributes:
        limit: attempts after the first one; 0 for none.
        delay: seconds before the first of them.
        factor: by which each further delay is longer.
        longest: seconds of a delay at most.
    """

    limit: int = attrs.field(default=3, validator=attrs.validators.ge(0))
    delay: float = attrs.field(default=1.0, validator=attrs.validators.ge(0))
    factor: float = attrs.field(default=2.0, validator=attrs.validators.ge(1))
    longest: float = attrs.field(default=60.0, validator=attrs.validators.ge(0))

    def delay_after(self, attempt: int) -> float:
        """Seconds to wait after an attempt, of which the first is 1."""
        return min(self.longest, self.delay * self.factor ** min(attempt - 1, 100))


class Fate(enum.Enum):
    """What becomes of a message that its handler has not processed."""

    RETRIED = "it is tried again later"
    DEAD_LETTER = "it went to the dead letters"
    REJECTED = "it was rejected"
    RETURNED = "it returns to its queue"


@attrs.frozen
class Failure:
    """A message that its handler has not processed.

    Attributes:
        message: as the handler had it.
        error: what the handler, or the broker, has raised.
        attempt: 1 for the first one.
        fate: what becomes of the message.
        delay: seconds until it is tried again; 0 for other fates.
    """

    message: Message
    error: BaseException
    attempt: int
    fate: Fate
    delay: float = 0.0
