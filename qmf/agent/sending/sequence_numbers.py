"""Sequence numbers of published messages, by which consoles notice losses.

Each subject counts from 1 in each run of an agent. The number of a message that may not have been sent is used again:
after a lost connection its content is sent again, so nothing is lost.
"""

from __future__ import annotations


class SequenceNumbers:
    """The last number of each subject. Not for use by several threads at once."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}

    def next(self, subject: str) -> int:
        """The number of the next message."""
        return self._last.get(subject, 0) + 1

    def use(self, subject: str) -> int:
        """The number of the next message, which uses it up."""
        number = self._last[subject] = self.next(subject)
        return number

    def save(self) -> dict[str, int]:
        """The state now, for `restore`."""
        return dict(self._last)

    def restore(self, state: dict[str, int]) -> None:
        """Go back to a state: messages that were numbered since then may not have been sent."""
        self._last = dict(state)
