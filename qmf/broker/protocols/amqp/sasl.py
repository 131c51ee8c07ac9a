"""SASL PLAIN on the broker's side, which proton has only where it was built with Cyrus (its wheel is not).

`SaslServer` is the SASL layer in front of an engine, without I/O: bytes in, bytes out. Once a user is authenticated,
all further bytes are the engine's. A hash of a password takes long to compute, so that is done elsewhere
(`RunElsewhere`): other clients don't wait for it. Without users it lets everybody in, as a qpidd without authentication
does: by ANONYMOUS, by PLAIN with any name and password, and without SASL.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from qmf._users import Users
from qmf.bus.engine.engine import NotAuthenticated
from qmf.codec import Described, UInt8, UInt64
from qmf.codec.amqp10 import decode, encode
from qmf.errors import DecodeError

_HEADER = b"AMQP\x03\x01\x00\x00"
#: AMQP 1.0, part 5.3.3.
_MECHANISMS, _INIT, _OUTCOME = 0x40, 0x41, 0x44
_INIT_NAMES = (_INIT, "amqp:sasl-init:list")
_OK, _AUTH = 0, 1
#: Name of a user of ANONYMOUS.
ANONYMOUS_USER = "anonymous"
#: SASL frames are never larger (AMQP 1.0, part 5.3.1).
_MAX_FRAME = 512
#: Bytes that a client may send while its password is checked.
_MAX_EARLY = 64 * 1024

#: Runs a function that takes long, elsewhere, and calls the other one with its result: never within the call, and not
#: if the function fails.
RunElsewhere = Callable[[Callable[[], bool], Callable[[bool], None]], None]


class SaslServer:
    """The server's side of one SASL exchange; the `SecurityLayer` of an engine.

    Attributes:
        user: None until the client is authenticated; empty for one that uses no SASL.
        claimed_user: who it says it is; empty before it has said so.
        claimed_mechanism: that it asked for; empty before.
        mechanism: that it used, or None.
        on_checked: called when a password was checked elsewhere; `feed` goes on then, without new bytes.
    """

    def __init__(self, users: Users | None, elsewhere: RunElsewhere | None = None) -> None:
        """Args:

        users: who log in with PLAIN; None lets everybody in.
        elsewhere: where hashes of passwords are computed; None: in `feed`.
        """
        self.user: str | None = None
        self.claimed_user = self.claimed_mechanism = ""
        self.mechanism: str | None = None
        self.on_checked: Callable[[], None] = lambda: None
        self._users = users
        self._elsewhere = elsewhere
        self._checking = False
        self._closed = False
        self._mechanisms = ("ANONYMOUS", "PLAIN") if users is None else ("PLAIN",)
        self._input = b""
        self._output = b""
        self._header_received = False
        #: User and mechanism that the client claims, and whether the check elsewhere has found that right.
        self._claimed = "", ""
        self._answer: bool | None = None

    @property
    def passed(self) -> bool:
        """See `SecurityLayer`."""
        return self.user is not None

    def feed(self, data: bytes | memoryview) -> bytes:
        """Take bytes from the client.

        Returns:
            bytes that follow the SASL layer, once `user` is set.

        Raises:
            NotAuthenticated: authentication failed. `output` may still have an answer for the client.
        """
        self._input += data
        if self._checking:
            if len(self._input) > _MAX_EARLY:
                raise NotAuthenticated("it sends without waiting until its password is checked")
            return b""
        if not self._header_received:
            self._read_header()
        if self._answer is not None:
            self._finish(self._answer)
        elif self._header_received and self.user is None:
            self._read_init()
        if self.user is None:
            return b""
        rest, self._input = self._input, b""
        return rest

    def output(self) -> bytes:
        """Bytes for the client."""
        data, self._output = self._output, b""
        return data

    def close(self) -> None:
        """The connection is gone: a check that has not begun is left out, and the result of another one ignored."""
        self._closed = True
        self.on_checked = lambda: None  # who is called knows this layer

    def _read_header(self) -> None:
        if not _HEADER.startswith(self._input[: len(_HEADER)]):
            if self._users is None:
                self.user = ""
                return
            raise NotAuthenticated("it does not start with SASL, which this broker requires")
        if len(self._input) >= len(_HEADER):
            self._input = self._input[len(_HEADER) :]
            self._header_received = True
            self._output += _HEADER + _mechanisms_frame(self._mechanisms)

    def _read_init(self) -> None:
        if len(self._input) < 8:
            return
        size, offset, kind = struct.unpack_from(">IBB", self._input)
        if not 8 <= size <= _MAX_FRAME or kind != 1 or not 8 <= offset * 4 <= size:
            raise NotAuthenticated("malformed SASL frame")
        if len(self._input) < size:
            return
        frame, self._input = self._input[offset * 4 : size], self._input[size:]
        right = self._authenticate(frame)
        if right is None:
            self._checking = True
        else:
            self._finish(right)

    def _finish(self, right: bool) -> None:
        self._answer = None
        self._output += _frame(_OUTCOME, [UInt8(_OK if right else _AUTH)])
        if not right:
            raise NotAuthenticated("unknown user or wrong password")
        self.user, self.mechanism = self._claimed

    def _authenticate(self, frame: bytes) -> bool | None:
        """Whether the client may go on; None: that is checked elsewhere."""
        try:
            init, _ = decode(frame)
        except DecodeError as error:
            raise NotAuthenticated(f"malformed SASL frame: {error}") from error
        if not isinstance(init, Described) or init.descriptor not in _INIT_NAMES or not isinstance(init.value, list):
            raise NotAuthenticated("unexpected SASL frame instead of init")
        mechanism, response = [*init.value, None, None][:2]
        self.claimed_mechanism = str(mechanism or "")
        if mechanism == "ANONYMOUS" and self._users is None:
            self._claimed = ANONYMOUS_USER, mechanism
            return True
        if mechanism != "PLAIN" or not isinstance(response, bytes):
            return False
        parts = response.split(b"\0")
        if len(parts) != 3:
            return False
        try:
            authority, user, password = (part.decode() for part in parts)
        except UnicodeDecodeError:
            return False
        self.claimed_user = user
        if not user or authority not in ("", user):
            return False
        self._claimed = user, "PLAIN"
        return self._matches(user, password)

    def _matches(self, user: str, password: str) -> bool | None:
        users = self._users
        if users is None:
            return True
        if self._elsewhere is None:
            return users.matches(user, password)
        right = users.matches_at_once(user, password)
        if right is None:

            def check() -> bool:
                return not self._closed and users.hash_matches(user, password)

            def checked(right: bool) -> None:
                if right:
                    users.remember(user, password)
                if not self._closed:
                    self._checking, self._answer = False, right
                    self.on_checked()

            self._elsewhere(check, checked)
        return right


def _frame(descriptor: int, fields: list[object]) -> bytes:
    return _framed(encode(Described(UInt64(descriptor), fields)))


def _mechanisms_frame(names: Sequence[str]) -> bytes:
    """The frame with an array of symbols, which the codec does not encode (AMQP 1.0, part 1.6.25)."""
    symbols = b"".join(bytes((len(name),)) + name.encode() for name in names)
    array = bytes((0xE0, 2 + len(symbols), len(names), 0xA3)) + symbols
    return _framed(bytes((0x00, 0x53, _MECHANISMS, 0xC0, 1 + len(array), 1)) + array)


def _framed(body: bytes) -> bytes:
    return struct.pack(">IBBH", 8 + len(body), 2, 1, 0) + body
