"""Values without the secrets in them, for the audit log.

Secrets are what is called like one, and passwords inside URLs and texts. Agents' schemas don't say which arguments are
secrets, so names have to.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

#: What is written instead of a secret.
MASK = "***"

#: Characters of a text, entries of a map or list, and levels of them that are kept.
MAX_TEXT, MAX_ENTRIES, MAX_DEPTH = 200, 20, 4

_SECRET = re.compile(
    r"passw|passphrase|pwd|secret|token|credential|(?:api|private|access).?key|\A(?:pass|pin|authorization)\Z", re.I
)
#: The user and password of a URL, and a value that a text names as a secret.
_IN_TEXT = re.compile(r"(?<=://)[^/\s@]*@|(?:(?<=password)|(?<=secret)|(?<=token))\s*[=:]\s*[^\s,;&]+", re.I)


def mask(value: object, depth: int = MAX_DEPTH) -> object:
    """A value for a line of the log: without secrets, and not too long. Maps and lists are new ones."""
    match value:
        case None | bool() | int() | float():
            return value
        case bytes() | bytearray() | memoryview():
            return f"{len(value)} bytes"
        case Mapping() if depth:
            found = {
                str(name)[:MAX_TEXT]: MASK if _SECRET.search(str(name)) else mask(item, depth - 1)
                for name, item in list(value.items())[:MAX_ENTRIES]
            }
            return found if len(value) <= MAX_ENTRIES else {**found, "...": f"{len(value) - MAX_ENTRIES} more"}
        case str():
            return _short(_IN_TEXT.sub(_hide, value))
        case Sequence() if depth:
            items = [mask(item, depth - 1) for item in value[:MAX_ENTRIES]]
            return items if len(value) <= MAX_ENTRIES else [*items, f"... {len(value) - MAX_ENTRIES} more"]
    return "..." if isinstance(value, (Mapping, Sequence)) else _short(_IN_TEXT.sub(_hide, str(value)))


def without_secrets(text: str, values: object) -> str:
    """A text without the secrets that some values have: an error may repeat what it is about."""
    for secret in sorted(_secrets(values), key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text


def _secrets(values: object, *, inside: bool = False) -> Iterator[str]:
    match values:
        case Mapping():
            for name, item in values.items():
                yield from _secrets(item, inside=inside or _SECRET.search(str(name)) is not None)
        case str():
            if inside and values:
                yield values
        case bytes() | bytearray() | memoryview():
            return
        case Sequence():
            for item in values:
                yield from _secrets(item, inside=inside)


def _hide(match: re.Match[str]) -> str:
    return f"{MASK}@" if match[0].endswith("@") else f"={MASK}"


def _short(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}... ({len(text)} characters)"
