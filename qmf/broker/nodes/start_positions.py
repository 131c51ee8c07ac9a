"""Where a receiver begins in a queue: at its head, at its tail, at a time, or at a sequence number."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from datetime import datetime

import attrs

from qmf.broker.nodes.contents import Contents
from qmf.broker.nodes.entries import Entry
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.sections import read_annotation
from qmf.errors import DecodeError

#: The annotation with the time at which a message came, in nanoseconds since 1970 (`--enable-timestamp`).
_INGRESS_TIME = "x-opt-ingress-timestamp"

_SYNTAX = "must be head, tail, {time: ...} or {sequence: ...}"


class StartKind(enum.Enum):
    """At what a receiver begins."""

    HEAD = "head"  #: the first message that waits
    TAIL = "tail"  #: the first message that comes from now on
    TIME = "time"  #: the first message that came at a time, or after it
    SEQUENCE = "sequence"  #: the message of a number, or the first one after it


class StartError(ValueError):
    """A value does not say where to begin; the message says why."""


@attrs.frozen
class StartPosition:
    """Where a receiver begins.

    Attributes:
        kind: at what.
        value: milliseconds since 1970, or a sequence number; 0 for the other kinds.
    """

    kind: StartKind
    value: int = 0

    def passed_over(self, contents: Contents) -> Sequence[Entry]:
        """The entries of a queue, acquired and delayed ones as well, that lie before it."""
        if self.kind is StartKind.HEAD:
            return ()
        entries = contents.all_entries()
        if self.kind is StartKind.TAIL:
            return entries
        if self.kind is StartKind.SEQUENCE:
            return [entry for entry in entries if entry.position < self.value]
        return [entry for entry in entries if (came := _came(entry.message)) is not None and came < self.value]


def read_start(value: object) -> StartPosition:
    """Where to begin, from the value of a filter or an option.

    Args:
        value: ``head``, ``tail``, ``{"time": T}`` or ``{"sequence": N}``; `T` in milliseconds since 1970, or as text of
            ISO 8601 with an offset from UTC.

    Raises:
        StartError: it is something else.
    """
    if value in ("head", "tail"):
        return StartPosition(StartKind(value))
    if not isinstance(value, Mapping) or len(value) != 1:
        raise StartError(f"{_SYNTAX}, not {value!r}")
    ((name, given),) = value.items()
    if str(name) == "sequence":
        return StartPosition(StartKind.SEQUENCE, _number(given, "sequence"))
    if str(name) != "time":
        raise StartError(f"{_SYNTAX}, not {str(name)!r}")
    if isinstance(given, str) and not given.isdecimal():
        return StartPosition(StartKind.TIME, _milliseconds(given))
    return StartPosition(StartKind.TIME, _number(given, "time"))


def _number(value: object, name: str) -> int:
    if isinstance(value, str) and value.isdecimal():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 63:
        raise StartError(f"{name}: must be a number from 0, not {value!r}")
    return int(value)


def _milliseconds(text: str) -> int:
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise StartError(f"time: {text!r} is no time of ISO 8601, such as 2026-11-29T12:00:00Z") from error
    if found.tzinfo is None:
        raise StartError(f"time: {text!r} has no offset from UTC, such as the Z of 2026-11-29T12:00:00Z")
    return round(found.timestamp() * 1000)


def _came(message: Message) -> int | None:
    """When a message came or was made, in milliseconds since 1970; None if it does not say."""
    if message.opaque:
        return None
    try:
        stamp = read_annotation(message.data, _INGRESS_TIME)
        if isinstance(stamp, int):
            return stamp // 1_000_000
        return message.fields.creation_time
    except DecodeError:
        return None
