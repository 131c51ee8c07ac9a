"""What a call of a method may do, judged by its name: schemas don't tell which methods change or destroy something."""

from __future__ import annotations

import re

from qmf.schema import Method

#: Methods whose names begin with one of these words only read; every other call is confirmed.
_READING = re.compile(r"(get|list|query|echo|find|lookup|read|show|describe|count|check|is|has|ping|status)(?![a-z])")
#: Words in the names of methods that destroy what cannot be had back, or interrupt others.
_DANGEROUS = frozenset(
    (
        "abort",
        "clear",
        "close",
        "delete",
        "destroy",
        "detach",
        "disconnect",
        "discard",
        "drop",
        "erase",
        "kill",
        "move",
        "purge",
        "remove",
        "reroute",
        "reset",
        "restart",
        "revoke",
        "shutdown",
        "stop",
        "terminate",
        "truncate",
        "wipe",
    )
)
#: Methods that begin with these set a value, whatever words follow: ``setAutoDelete``.
_SETTING = frozenset(("set", "enable", "disable"))
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def needs_confirmation(method: Method) -> bool:
    """True unless the name of a method says that it only reads."""
    return not _READING.match(method.name)


def is_dangerous(method: Method) -> bool:
    """True if the name of a method says that it destroys something or interrupts others: ``purge``, ``deleteQueue``."""
    words = [word.lower() for word in _WORD.findall(method.name)]
    return (
        needs_confirmation(method) and words[:1] != [] and words[0] not in _SETTING and not _DANGEROUS.isdisjoint(words)
    )
