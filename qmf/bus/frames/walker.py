"""Walks the frames of a connection in one direction, and stops at the few that the engine has to know of.

Bytes come in pieces of any size. Of what the peer sends only heads of frames are kept, everything else is skipped. What
is sent to the peer can be held back, and is looked at only where heads are whole.
"""

from __future__ import annotations

import enum
import functools
import importlib
import os
import struct
from collections.abc import Sequence
from typing import Any, Protocol

import attrs

from qmf.bus.frames.performatives import (
    ATTACH,
    BEGIN,
    DISPOSITION,
    FLOW,
    TAG,
    TRANSFER,
    has_padded_tag,
    is_null,
    read_fields,
    read_flag,
    read_number,
    read_performative,
)

#: Set in the environment to do without the compiled walker.
NO_NATIVE = "QMF_NO_NATIVE"

#: Bytes of a frame that are looked at; all fields that matter are among them.
HEAD = 128

#: Of the compiled module that fits; see `version` there.
VERSION = 3
#: A protocol header begins with this, and has the size of a frame without body. As size of a frame it would be 1 GB.
_PROTOCOL = b"AMQP"
_FRAME_HEADER = 8

#: A frame: its length; place of its data, and its type; channel; the first bytes of its descriptor in the short form.
_COMMON_HEAD = struct.Struct(">IHHHB")
_PLAIN, _DESCRIPTOR, _BINARY8 = 0x0200, 0x0053, 0xA0
#: Bytes of the head of a list by its code.
_LIST_HEADS = bytes(3 if code == 0xC0 else 9 for code in range(256))
#: Bytes of unsigned numbers by their codes; 0 for other values.
_NUMBER_SIZES = bytes({0x43: 1, 0x52: 2, 0x70: 5}.get(code, 0) for code in range(256))
#: Bytes of the fields of a transfer up to the length of its delivery tag, at most.
_TRANSFER_FIELDS = 12
#: Codes of a field for the message format that says nothing.
_NO_FORMAT = b"\x40\x43"


class StopKind(enum.IntEnum):
    """Why a walker stops."""

    FORMAT = 1  #: received: a transfer of a message with a format; the value is the format
    LINK_ECHO = 2  #: received: a flow that asks for the link's state; the value is delivery count and credit in sum
    SESSION_ECHO = 3  #: received: a flow that asks for the session's state
    BEGIN = 4  #: received
    ATTACH = 5  #: sent
    PADDED_TAG = 6  #: sent: a transfer of a message with a format; the value is the position of the tag in the frame
    INCOMPLETE = 7  #: sent: too little of the frame is there to look at it
    AVAILABLE = 8  #: received: a flow that tells how many messages wait for credit at the sender; that is the value


@attrs.frozen(weakref_slot=False)
class Stop:
    """A frame that matters.

    Attributes:
        kind: why.
        start, end: of the frame in the data; a frame that came in pieces starts at the walk's beginning, and an
            incomplete one, or a transfer that is sent, may have the end of the data.
        channel: of its session; meaningless for an incomplete frame.
        value: see `StopKind`.
    """

    kind: StopKind
    start: int
    end: int
    channel: int = 0
    value: int = 0


class Walker(Protocol):
    """Walks one direction of a connection.

    Attributes:
        address: of the state of a compiled one, for the engine's compiled functions; 0 for one in Python.
    """

    @property
    def address(self) -> int:
        """See above."""

    def next_stop(self, data: bytes | memoryview, offset: int) -> Stop | None:
        """Walk on.

        Args:
            data: the next bytes, or those of the last stop.
            offset: 0 for new bytes, else the end of the last stop. After an incomplete frame, the next call is for
                bytes that begin with it.

        Returns:
            the next stop; None at the end of the data.
        """


def walker(*, outgoing: bool) -> Walker:
    """A walker for what is received or, with `outgoing`, for what is sent."""
    module = compiled_walker()
    return PythonWalker(outgoing=outgoing) if module is None else CompiledWalker(module, outgoing=outgoing)


@functools.cache
def compiled_walker() -> Any:
    """The compiled module; None where it is not installed, or not wanted."""
    if os.environ.get(NO_NATIVE):
        return None
    try:
        module = importlib.import_module("qmf.bus.frames._walker")
    except ImportError:
        return None
    return module if module.lib.version() == VERSION else None


class CompiledWalker:
    """A `Walker` by `walker.c`."""

    __slots__ = ("_from_buffer", "_next_stop", "_state", "address")

    def __init__(self, module: Any, *, outgoing: bool) -> None:
        self._state = module.ffi.new("walker_t *", {"outgoing": outgoing})
        self.address = int(module.ffi.cast("uintptr_t", self._state))
        self._next_stop, self._from_buffer = module.lib.next_stop, module.ffi.from_buffer

    def next_stop(self, data: bytes | memoryview, offset: int) -> Stop | None:
        """See `Walker`."""
        state = self._state
        # What is made of a buffer is gone with the call, since the owner may reuse the buffer.
        source = data if type(data) is bytes else self._from_buffer(data)
        if not self._next_stop(state, source, len(data), offset):
            return None
        stop = state.found
        return Stop(StopKind(stop.kind), stop.start, stop.end, stop.channel, stop.value)


class PythonWalker:
    """A `Walker` in Python."""

    __slots__ = ("_due", "_head", "_lost", "_outgoing", "_skip")

    address = 0

    def __init__(self, *, outgoing: bool) -> None:
        self._outgoing = outgoing
        #: Bytes of the frame that are still to come, and what it is if it matters.
        self._skip = 0
        self._due: Stop | None = None
        #: The beginning of a frame that comes in pieces.
        self._head = b""
        #: This is not AMQP: nothing is looked at any more.
        self._lost = False

    def next_stop(self, data: bytes | memoryview, offset: int) -> Stop | None:
        """See `Walker`."""
        size = len(data)
        position = start = offset
        while position < size and not self._lost:
            if not self._skip:
                if not self._head:
                    start = position = _skip_common(data, position, size, TAG if self._outgoing else -1)
                if not self._begin_frame(data, position):
                    break
            step = min(self._skip, size - position)
            position += step
            self._skip -= step
            if (not self._skip or self._outgoing) and self._due is not None:
                due, self._due = self._due, None
                return Stop(due.kind, start, position, due.channel, due.value)
        return Stop(StopKind.INCOMPLETE, start, size) if self._outgoing and position < size and not self._lost else None

    def _begin_frame(self, data: bytes | memoryview, position: int) -> bool:
        """Learn how long the frame here is, and why it matters; False while too little of it is there."""
        frame = self._head + bytes(data[position : position + HEAD - len(self._head)])
        if len(frame) < _FRAME_HEADER or len(frame) < _needed_bytes(frame):
            if not self._outgoing:
                self._head = frame
            return False
        length = _frame_length(frame)
        if length < _FRAME_HEADER:
            self._lost = True
            return False
        due = _look(frame, min(len(frame), length), outgoing=self._outgoing)
        if due is not None and due.kind is StopKind.ATTACH and len(data) - position < length:
            return False
        # What is there of the frame; that of its head may have come before.
        self._due, self._skip, self._head = due, length - len(self._head), b""
        return True


def _skip_common(data: bytes | memoryview, position: int, size: int, tag_size: int) -> int:
    """Skip whole frames that do not matter, in the forms that nearly all have: this takes a tenth of the time.

    Args:
        data: the bytes.
        position: of the first frame.
        size: of the data.
        tag_size: of a delivery tag that does not matter; negative if none does.

    Returns:
        position of the first frame that is to be looked at.
    """
    while size - position > _COMMON_HEAD.size:
        length, form, _, descriptor, code = _COMMON_HEAD.unpack_from(data, position)
        end = position + length
        if form != _PLAIN or descriptor != _DESCRIPTOR or end > size or length <= _COMMON_HEAD.size:
            break
        if code == TRANSFER:
            at = position + _COMMON_HEAD.size
            at += _LIST_HEADS[data[at]]
            if at + _TRANSFER_FIELDS > end:
                break
            handle = _NUMBER_SIZES[data[at]]
            number = _NUMBER_SIZES[data[at + handle]]
            at += handle + number
            if not handle or not number or data[at] != _BINARY8 or 0 <= tag_size != data[at + 1]:
                break
            at += 2 + data[at + 1]
            if at >= end or data[at] not in _NO_FORMAT:
                break
        elif code != DISPOSITION:
            break
        position = end
    return position


def _frame_length(head: bytes) -> int:
    return _FRAME_HEADER if head.startswith(_PROTOCOL) else int.from_bytes(head[:4])


def _needed_bytes(head: bytes) -> int:
    """Bytes of a frame that have to be there to look at it."""
    return min(_frame_length(head), HEAD)


def _look(frame: bytes, known: int, *, outgoing: bool) -> Stop | None:
    """Why a frame of which `known` bytes are there matters, if it does; without its place."""
    if frame.startswith(_PROTOCOL):
        return None
    code, channel, position = read_performative(frame, known)
    kind, value = (
        _look_at_sent(frame, known, code, position) if outgoing else _look_at_received(frame, known, code, position)
    )
    return None if kind is None else Stop(kind, 0, 0, channel, value)


def _look_at_sent(frame: bytes, known: int, code: int, position: int) -> tuple[StopKind | None, int]:
    if code == TRANSFER:
        fields = read_fields(frame, position, known, 4)
        return (StopKind.PADDED_TAG, fields[2]) if len(fields) == 4 and has_padded_tag(frame, fields) else (None, 0)
    return (StopKind.ATTACH if code == ATTACH else None), 0


def _look_at_received(frame: bytes, known: int, code: int, position: int) -> tuple[StopKind | None, int]:
    if code == TRANSFER:
        fields = read_fields(frame, position, known, 4)
        value = read_number(frame, fields[3]) if len(fields) == 4 else 0
        return (StopKind.FORMAT if value else None), value
    if code == FLOW:
        return _look_at_flow(frame, read_fields(frame, position, known, 10))
    return (StopKind.BEGIN if code == BEGIN else None), 0


def _look_at_flow(frame: bytes, fields: Sequence[int]) -> tuple[StopKind | None, int]:
    if len(fields) == 10 and read_flag(frame, fields[9]):
        value = (read_number(frame, fields[5]) + read_number(frame, fields[6])) & 0xFFFFFFFF
        return (StopKind.SESSION_ECHO if is_null(frame, fields[4]) else StopKind.LINK_ECHO), value
    if len(fields) >= 8 and not is_null(frame, fields[4]) and not is_null(frame, fields[7]):
        return StopKind.AVAILABLE, read_number(frame, fields[7])
    return None, 0
