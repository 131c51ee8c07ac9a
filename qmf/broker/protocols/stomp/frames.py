"""Frames of STOMP: bytes in and out, for the versions 1.0, 1.1 and 1.2. Nothing here knows what a command means."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Mapping

import attrs

#: Bytes of the headers of a frame with its command; and headers.
MAX_HEAD, MAX_HEADERS = 64 * 1024, 1000

_END = re.compile(rb"\n\r?\n")
_ESCAPES = {"\\": "\\\\", "\r": "\\r", "\n": "\\n", ":": "\\c"}
_UNESCAPES = {"\\\\": "\\", "\\r": "\r", "\\n": "\n", "\\c": ":"}
#: Their headers are as 1.0 has them, so that both ends can read them before they agree.
_UNESCAPED = frozenset({"CONNECT", "CONNECTED"})


class StompVersion(enum.Enum):
    """A version of STOMP, the oldest first."""

    V1_0 = "1.0"
    V1_1 = "1.1"
    V1_2 = "1.2"


class FrameError(Exception):
    """What came is no frame of STOMP, or larger than it may be; says why."""


@attrs.frozen
class Frame:
    """A frame. Of headers that are repeated it has the first."""

    command: str
    headers: Mapping[str, str]
    body: bytes = b""


class FrameReader:
    """Reads frames from bytes as they come.

    Attributes:
        version: that both ends have agreed on; 1.2 before, as what a client may send then is the same in all.
        max_frame: bytes of the largest frame.
    """

    def __init__(self, max_frame: int) -> None:
        """Begin without bytes; `max_frame`: bytes of the largest frame."""
        self.version = StompVersion.V1_2
        self.max_frame = max_frame
        self._buffer = bytearray()
        #: How far the end of the headers, or of a body without a length, was looked for.
        self._looked = 0
        #: Of the frame whose body is still to come: it, where its body begins, and its length, if it says it.
        self._begun: tuple[Frame, int, int | None] | None = None

    def feed(self, data: bytes) -> None:
        """Take bytes."""
        self._buffer += data

    def next_frame(self) -> Frame | None:
        """The next frame; None as long as it has not come whole.

        Raises:
            FrameError: there is none.
        """
        if self._begun is None:
            self._skip_ends()
            self._begun = self._read_head()
            if self._begun is None:
                return None
        frame, start, length = self._begun
        buffer = self._buffer
        if length is not None:
            end = start + length
            if len(buffer) <= end:
                return None
            if buffer[end]:
                raise FrameError("no NUL behind a body of content-length bytes")
        else:
            end = buffer.find(0, max(start, self._looked))
            if end < 0:
                self._looked = len(buffer)
                if len(buffer) > self.max_frame:
                    raise FrameError(f"a frame of more than {self.max_frame} bytes")
                return None
        body = bytes(buffer[start:end])
        del buffer[: end + 1]
        self._looked, self._begun = 0, None
        return attrs.evolve(frame, body=body)

    def _skip_ends(self) -> None:
        """Between frames there may be ends of lines: heart-beats."""
        buffer, count = self._buffer, 0
        while count < len(buffer) and buffer[count] in b"\r\n":
            count += 1
        del buffer[:count]

    def _read_head(self) -> tuple[Frame, int, int | None] | None:
        buffer = self._buffer
        match = _END.search(buffer, max(0, self._looked - 3), MAX_HEAD + 3)
        if match is None:
            if len(buffer) > MAX_HEAD:
                raise FrameError(f"headers of more than {MAX_HEAD} bytes")
            self._looked = len(buffer)
            return None
        self._looked = 0
        try:
            lines = bytes(buffer[: match.start()]).decode().split("\n")
        except UnicodeDecodeError:
            raise FrameError("headers that are not UTF-8") from None
        command, *rest = [line.removesuffix("\r") for line in lines]
        if not command.isascii() or not command.isupper() or not command.isalpha():
            raise FrameError(f"no command, but {command[:20]!r}")
        if len(rest) > MAX_HEADERS:
            raise FrameError(f"more than {MAX_HEADERS} headers")
        headers: dict[str, str] = {}
        for line in rest:
            name, value = self._header(command, line)
            headers.setdefault(name, value)
        length = _length(headers.get("content-length"))
        if length is not None and length > self.max_frame:
            raise FrameError(f"a frame of more than {self.max_frame} bytes")
        return Frame(command, headers), match.end(), length

    def _header(self, command: str, line: str) -> tuple[str, str]:
        name, colon, value = line.partition(":")
        if not colon or not name:
            raise FrameError(f"no header, but {line[:50]!r}")
        if command in _UNESCAPED or command == "STOMP" or self.version is StompVersion.V1_0:
            # Clients of 1.0 write blanks behind the colon.
            return name.strip(), value.strip() if self.version is StompVersion.V1_0 else value
        return _unescape(name, self.version), _unescape(value, self.version)


def encode_frame(command: str, headers: Iterable[tuple[str, str]], body: bytes, version: StompVersion) -> bytes:
    """A frame as bytes; `version`: that both ends have agreed on."""
    lines = [command]
    if version is StompVersion.V1_0 or command in _UNESCAPED:
        # What would break the frame can't be said.
        lines += [f"{_one_line(name).replace(':', ' ')}:{_one_line(value)}" for name, value in headers]
    else:
        lines += [f"{_escape(name, version)}:{_escape(value, version)}" for name, value in headers]
    return "\n".join([*lines, "", ""]).encode() + body + b"\0"


def _one_line(text: str) -> str:
    return text.replace("\r", " ").replace("\n", " ").replace("\0", " ")


def _escape(text: str, version: StompVersion) -> str:
    if not any(char in text for char in "\\\r\n:\0"):
        return text
    text = text.replace("\0", "\ufffd")
    if version is StompVersion.V1_1:
        text = text.replace("\r", " ")  # 1.1 has no escape for it
    return "".join(_ESCAPES.get(char, char) for char in text)


def _unescape(text: str, version: StompVersion) -> str:
    if "\\" not in text:
        return text

    def plain(match: re.Match[str]) -> str:
        found = _UNESCAPES.get(match[0])
        if found is None or (found == "\r" and version is StompVersion.V1_1):
            raise FrameError(f"unknown escape {match[0]!r}")
        return found

    return re.sub(r"\\.?", plain, text, flags=re.DOTALL)


def _length(text: str | None) -> int | None:
    if text is None:
        return None
    if not re.fullmatch(r"[0-9]{1,12}", text):
        raise FrameError(f"content-length is no number: {text[:20]!r}")
    return int(text)
