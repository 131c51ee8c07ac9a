"""Binding keys of topic exchanges: words separated by dots, ``*`` for one word, ``#`` for any number."""

from __future__ import annotations

import functools


@functools.lru_cache(maxsize=4096)
def key_matches(pattern: str, subject: str) -> bool:
    """True when a binding key matches a routing key."""
    return _match(pattern.split("."), subject.split("."))


def _match(pattern: list[str], words: list[str]) -> bool:
    if not pattern:
        return not words
    first, rest = pattern[0], pattern[1:]
    if first == "#":
        return not rest or any(_match(rest, words[skipped:]) for skipped in range(len(words) + 1))
    return bool(words) and first in ("*", words[0]) and _match(rest, words[1:])


def class_keys(kind: str, package: str | None, name: str | None) -> list[str]:
    """Binding keys for data indications or events of a package or class.

    Args:
        kind: ``data`` or ``event``.
        package: its name, or None for all.
        name: class or event in that package, or None for all.

    Returns:
        one key for agents that escape dots in names, like qpidd and ours, and where it differs one for libqmf2, which
        doesn't (QMF2.md 2).
    """
    # Object classes are in lower case on the wire.
    return _keys(kind, package, name.lower() if name is not None and kind == "data" else name)


def any_package_key(name: str) -> str:
    """Binding key for data indications of a class in whatever package.

    Of agents that escape dots, that is: only these write a package as one word, and only these send data indications.
    """
    return f"agent.ind.data.*.{name.lower().replace('.', '_')}.#"


def heartbeat_keys(vendor: str | None, product: str | None = None) -> list[str]:
    """Binding keys for heartbeats of a vendor's agents, in both forms; all agents when `vendor` is None."""
    return _keys("heartbeat", vendor, product)


def _keys(kind: str, *names: str | None) -> list[str]:
    words = [name for name in names if name is not None]
    if names[0] is None:
        return [f"agent.ind.{kind}.#"]
    escaped = ".".join(word.replace(".", "_") for word in words)
    plain = ".".join(words)
    return list(dict.fromkeys(f"agent.ind.{kind}.{middle}.#" for middle in (escaped, plain)))
