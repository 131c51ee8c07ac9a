"""Numbers on what is sent without being asked for, by which consoles notice that something was lost.

Each subject counts from 1 in each run of an agent. A number says how many messages there were to hear, so one that may
not have left is used again: a break of the connection is no loss, for what was in it is sent again.
"""

from __future__ import annotations


class SequenceNumbers:
    """The last number of each subject. Not for use by several threads at once."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}

    def next(self, subject: str) -> int:
        """The number that the next message will have."""
        return self._last.get(subject, 0) + 1

    def use(self, subject: str) -> int:
        """Take the next number."""
        number = self._last[subject] = self.next(subject)
        return number

    def save(self) -> dict[str, int]:
        """The state now, for `restore`."""
        return dict(self._last)

    def restore(self, state: dict[str, int]) -> None:
        """Go back: what was numbered since was not sent for sure."""
        self._last = dict(state)
