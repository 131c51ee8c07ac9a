"""What a server's mechanism answers."""

from __future__ import annotations

from collections.abc import Callable

import attrs


@attrs.frozen
class Challenge:
    """The exchange continues.

    Attributes:
        data: for the client.
    """

    data: bytes


@attrs.frozen
class Authenticated:
    """The client is who it says.

    Attributes:
        user: its name.
        data: more for the client, with the outcome; None for nothing.
        groups: that its access token says the user belongs to.
        token_end: when that token ends, in seconds since 1970; None without one.
    """

    user: str
    data: bytes | None = None
    groups: frozenset[str] = frozenset()
    token_end: float | None = None


@attrs.frozen
class Rejected:
    """The client may not go on.

    Attributes:
        reason: for the log; the client learns no more than that it was refused.
    """

    reason: str


@attrs.frozen
class Pending:
    """The result takes long to compute, or waits for others.

    Attributes:
        compute: returns the result; may be called on any thread, once.
    """

    compute: Callable[[], Authenticated | Rejected]


Result = Challenge | Authenticated | Rejected | Pending
