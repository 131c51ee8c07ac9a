"""Texts of any length, such as names of agents and queues: how much of them is shown where room is scarce."""

from __future__ import annotations

#: Characters of a name or value that are shown in a table or a heading; who wants the rest points at it or copies it.
LONGEST_SHOWN = 120


def cut(text: str) -> str:
    """A text as it is shown: a long one ends after `LONGEST_SHOWN` characters, with ``…``."""
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"
