"""What callers of the web server may do."""

from __future__ import annotations

import enum


class Scope(enum.Enum):
    """What a caller may do. Scopes are independent: `call` alone does not allow to read."""

    READ = "read"  #: see agents, schemas, objects, events and metrics
    CALL = "call"  #: call methods
    SET = "set"  #: set properties
    MESSAGES = "messages"  #: send and consume messages


ALL_SCOPES = frozenset(Scope)


def parse_scopes(text: str) -> frozenset[Scope]:
    """Scopes from a list like ``read,call``; ``all`` for every one.

    Raises:
        ValueError: no such scope; names those that exist.
    """
    names = [item.strip() for item in text.split(",") if item.strip()]
    if names == ["all"]:
        return ALL_SCOPES
    known = {item.value: item for item in Scope}
    wrong = [name for name in names if name not in known]
    if wrong or not names:
        raise ValueError(f"scopes are {', '.join(known)} or all, separated by commas, not {text!r}")
    return frozenset(known[name] for name in names)
