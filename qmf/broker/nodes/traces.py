"""The trace of a message: the ids of the brokers that it has left by links, in a message annotation of qpidd's name.

Messages without message annotations, and those whose trace is the only one, are not decoded for it.
"""

from __future__ import annotations

import functools

from qmf.broker.nodes.sections import (
    MESSAGE_ANNOTATIONS,
    add_value,
    end_of_header,
    place_for_annotations,
    read_annotation,
)
from qmf.codec import amqp10
from qmf.codec.types import Symbol
from qmf.errors import DecodeError

#: Name of the annotation: a text, the ids with commas between them.
TRACE = "x-qpid.trace"

#: The section as `add_to_trace` writes it where there is none: its beginning and four bytes with its size, before the
#: number of its keys and values, and the key.
_BEGINNING = b"\x00\x53\x72\xd1"
_KEY = (2).to_bytes(4) + amqp10.encode(Symbol(TRACE))
_STRING8, _STRING32 = 0xA1, 0xB1

#: Bytes of the longest trace that is read, and how many are remembered: most messages of a link have the same one.
_LONGEST, _TRACES = 16_384, 250


def end_of_trace(data: bytes, start: int) -> int:
    """Where the message annotations end that begin at `start`; 0 if they are not a trace alone, or in another form."""
    text, end = _place_of_text(data, start)
    return end if text else 0


def read_trace(data: bytes) -> tuple[str, ...]:
    """The ids in the trace of a message, in the order in which it has left the brokers.

    Raises:
        DecodeError: the message is malformed, or its trace is not a text, or too long.
    """
    if place_for_annotations(data) >= 0:
        return ()
    text, end = _place_of_text(data, end_of_header(data))
    if text:
        return _split(data[text:end])
    trace = read_annotation(data, TRACE)
    if trace is not None and not isinstance(trace, str):
        raise DecodeError(f"message annotation {TRACE}: must be a text, not {trace!r:.60}")
    return _split((trace or "").encode())


def add_to_trace(data: bytes, broker: str) -> bytes:
    """A message whose trace has one more id at its end.

    Raises:
        DecodeError: the message is malformed, or its trace is not a text, or too long.
    """
    place = place_for_annotations(data)
    if place >= 0:
        return data[:place] + trace_section(broker) + data[place:]
    trace = ",".join((*read_trace(data), broker))
    start = end_of_header(data)
    if end := end_of_trace(data, start):
        return data[:start] + trace_section(trace) + data[end:]
    return add_value(data, MESSAGE_ANNOTATIONS, TRACE, trace)


@functools.lru_cache(maxsize=_TRACES)
def trace_section(trace: str) -> bytes:
    """Message annotations with a trace alone: the encoded section."""
    return add_value(b"", MESSAGE_ANNOTATIONS, TRACE, trace)


@functools.lru_cache(maxsize=_TRACES)
def _split(trace: bytes) -> tuple[str, ...]:
    """The ids in a trace. qpidd separates them at blanks as well.

    Raises:
        DecodeError: it is not UTF-8, or too long.
    """
    if len(trace) > _LONGEST:
        raise DecodeError(f"message annotation {TRACE}: is longer than {_LONGEST} bytes")
    try:
        return tuple(trace.decode().replace(",", " ").split())
    except UnicodeDecodeError as error:
        raise DecodeError(f"message annotation {TRACE}: is not UTF-8") from error


def _place_of_text(data: bytes, start: int) -> tuple[int, int]:
    """Where the text of a trace begins and ends that is the only message annotation; zeros if it is not."""
    pos = start + len(_BEGINNING) + 4
    text = pos + len(_KEY) + 2
    if start < 0 or not (data.startswith(_BEGINNING, start) and data.startswith(_KEY, pos)) or len(data) < text + 3:
        return 0, 0
    end = pos + int.from_bytes(data[pos - 4 : pos])
    if data[text - 2] == _STRING8 and text + data[text - 1] == end:
        return text, end
    if data[text - 2] == _STRING32 and text + 3 + int.from_bytes(data[text - 1 : text + 3]) == end:
        return text + 3, end
    return 0, 0
