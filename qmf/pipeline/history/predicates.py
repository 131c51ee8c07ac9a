"""Predicates of queries, applied to recorded values as agents apply them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qmf.protocol import matches


def fulfils(where: Sequence[object], values: Mapping[str, object]) -> bool:
    """True if values by wire name fulfil a predicate (QMF2.md 4.4.2)."""
    return matches(list(where), values)
