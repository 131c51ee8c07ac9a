"""Shares of the agents of a bus: several recorders divide them, each has those of one share."""

from __future__ import annotations

import hashlib
import re

import attrs

_SYNTAX = re.compile(r"([0-9]{1,4})/([0-9]{1,4})")


@attrs.frozen
class Share:
    """One of several shares.

    Attributes:
        number: from 1 to `count`.
        count: of the shares.
    """

    number: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Share:
        """A share from its text, ``2/5``.

        Raises:
            ValueError: it is none.
        """
        match = _SYNTAX.fullmatch(text)
        if match is None or not 1 <= int(match[1]) <= int(match[2]):
            raise ValueError(f"a share is a number of several, such as 2/5, not {text!r}")
        return cls(int(match[1]), int(match[2]))

    def has(self, agent: str | None) -> bool:
        """True for the agents of this share, and for what is about no agent: that is in all of them.

        The same for all recorders, whatever their machine and version of Python are.
        """
        if agent is None:
            return True
        digest = hashlib.blake2b(agent.encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") % self.count == self.number - 1

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"
