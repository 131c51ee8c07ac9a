"""SASL PLAIN for the broker's side, which proton has only where it was built with Cyrus (the wheel was not).

`SaslServer` speaks the SASL layer in front of an engine: no I/O, bytes in and out. When it lets a client in, everything
that follows is the engine's. Without users the engine's own SASL serves, which lets anybody in.
"""

from __future__ import annotations

import hmac
import struct
from collections.abc import Mapping
from pathlib import Path

from qmf.bus.engine.engine import Engine
from qmf.bus.engine.values import ConnectionSettings
from qmf.codec import Described, Symbol, UInt8, UInt64
from qmf.codec.amqp10 import decode, encode
from qmf.errors import CallerError, DecodeError

_HEADER = b"AMQP\x03\x01\x00\x00"
#: AMQP 1.0, part 5.3.3.
_MECHANISMS, _INIT, _OUTCOME = 0x40, 0x41, 0x44
_INIT_NAMES = (_INIT, "amqp:sasl-init:list")
_OK, _AUTH = 0, 1
#: SASL frames are never larger (AMQP 1.0, part 5.3.1).
_MAX_FRAME = 512


class UsersError(CallerError):
    """A file of users cannot be used; the message names file, line and reason, never a password."""


def read_users(path: str | Path) -> dict[str, str]:
    """Passwords by user from a file of lines ``name:password``; empty lines and lines starting with ``#`` don't count.

    Raises:
        UsersError: it cannot be read, or a line is wrong.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise UsersError(f"{path}: {reason}") from error
    users: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, colon, password = line.partition(":")
        if not name or not colon or not password:
            raise UsersError(f"{path}:{number}: a line is name:password")
        if name in users:
            raise UsersError(f"{path}:{number}: user {name!r} is there twice")
        users[name] = password
    if not users:
        raise UsersError(f"{path}: no users")
    return users


class SaslRefused(Exception):
    """A client is not let in; the message says why, for the log."""


class SaslServer:
    """The server side of one SASL exchange that only allows PLAIN.

    Attributes:
        user: who was let in, or None.
    """

    def __init__(self, users: Mapping[str, str]) -> None:
        self.user: str | None = None
        self._users = users
        self._input = b""
        self._output = b""
        self._greeted = False

    def feed(self, data: bytes | memoryview) -> bytes:
        """Take bytes of the client.

        Returns:
            bytes behind the SASL layer, once `user` is set.

        Raises:
            SaslRefused: the client is not let in. `output` may still hold an answer for it.
        """
        self._input += data
        if not self._greeted:
            self._greet()
        if self._greeted and self.user is None:
            self._init()
        if self.user is None:
            return b""
        rest, self._input = self._input, b""
        return rest

    def output(self) -> bytes:
        """Bytes for the client."""
        data, self._output = self._output, b""
        return data

    def _greet(self) -> None:
        if not _HEADER.startswith(self._input[: len(_HEADER)]):
            raise SaslRefused("it does not start with SASL, which this broker requires")
        if len(self._input) >= len(_HEADER):
            self._input = self._input[len(_HEADER) :]
            self._greeted = True
            self._output += _HEADER + _frame(_MECHANISMS, [Symbol("PLAIN")])

    def _init(self) -> None:
        if len(self._input) < 8:
            return
        size, offset, kind = struct.unpack_from(">IBB", self._input)
        if not 8 <= size <= _MAX_FRAME or kind != 1 or not 8 <= offset * 4 <= size:
            raise SaslRefused("malformed SASL frame")
        if len(self._input) < size:
            return
        frame, self._input = self._input[offset * 4 : size], self._input[size:]
        code = _OK if self._check(frame) else _AUTH
        self._output += _frame(_OUTCOME, [UInt8(code)])
        if self.user is None:
            raise SaslRefused("unknown user or wrong password")

    def _check(self, frame: bytes) -> bool:
        try:
            init, _ = decode(frame)
        except DecodeError as error:
            raise SaslRefused(f"malformed SASL frame: {error}") from error
        if not isinstance(init, Described) or init.descriptor not in _INIT_NAMES or not isinstance(init.value, list):
            raise SaslRefused("a SASL frame that is no init")
        mechanism, response = [*init.value, None, None][:2]
        if mechanism != "PLAIN" or not isinstance(response, bytes):
            return False
        parts = response.split(b"\0")
        if len(parts) != 3:
            return False
        try:
            authority, user, password = (part.decode() for part in parts)
        except UnicodeDecodeError:
            return False
        # Compared in constant time, with something also when the user is unknown, so that the time tells nothing.
        right = hmac.compare_digest(self._users.get(user, "").encode(), password.encode())
        if not right or user not in self._users or authority not in ("", user):
            return False
        self.user = user
        return True


def _frame(descriptor: int, fields: list[object]) -> bytes:
    body = encode(Described(UInt64(descriptor), fields))
    return struct.pack(">IBBH", 8 + len(body), 2, 1, 0) + body


class SaslEngine(Engine):
    """An engine that first wants to know who the client is."""

    def __init__(self, settings: ConnectionSettings, users: Mapping[str, str]) -> None:
        """Args:

        settings: with `mechanisms` None: the guard speaks SASL instead.
        users: passwords by user.
        """
        super().__init__(settings)
        self._guard = SaslServer(users)

    @property
    def user(self) -> str:
        """Who was let in; empty before."""
        return self._guard.user or ""

    @property
    def mechanism(self) -> str | None:
        """See `Engine`."""
        return None if self._guard.user is None else "PLAIN"

    def feed(self, data: bytes | memoryview) -> None:
        """See `Engine`."""
        if self._guard.user is None:
            try:
                data = self._guard.feed(data)
            except SaslRefused as error:
                self.fail("amqp:unauthorized-access", str(error), authentication=True)
                return
        super().feed(data)

    def output(self) -> bytes:
        """See `Engine`."""
        if data := self._guard.output():
            return data
        # Nothing of AMQP may be said before the guard is content, not even why not.
        return super().output() if self._guard.user is not None else b""
