"""What the broker refuses to a client, whatever its protocol, which has an error of its own for each reason."""

from __future__ import annotations

import enum

import attrs


class Reason(enum.Enum):
    """Why something is refused."""

    MALFORMED = enum.auto()  #: it cannot be decoded
    INVALID = enum.auto()  #: a value in it is wrong
    NOT_FOUND = enum.auto()  #: an address names nothing
    UNAUTHORIZED = enum.auto()  #: the policy does not allow it
    FULL = enum.auto()  #: a limit is reached
    CIRCULAR = enum.auto()  #: a message has been here before, or has passed too many brokers
    UNKNOWN_TRANSACTION = enum.auto()  #: no open transaction has that id
    ROLLED_BACK = enum.auto()  #: a transaction could not be committed


@attrs.frozen
class Refusal:
    """What a client learns when something is refused.

    Attributes:
        reason: for programs.
        description: for people.
    """

    reason: Reason
    description: str
