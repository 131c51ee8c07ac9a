"""Users and their passwords, of a broker or of `qmf-web`: plain text, or hashes that don't give them away.

A hash is a text ``$scrypt$ln=14,r=8,p=1$SALT$HASH`` (RFC 7914; salt and hash in base64), which other programs use, too.
Computing one takes some hundredths of a second and 16 MB on purpose, so a password that was right once is remembered,
as a digest under a key of this process: who connects again does not wait.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import re
from collections.abc import Mapping
from pathlib import Path

import attrs

from qmf.errors import CallerError

#: Cost of new hashes: 2 to this power, with `_BLOCK` and `_PARALLEL` as RFC 7914 names them.
_COST, _BLOCK, _PARALLEL = 14, 8, 1
#: A hash that is read may cost 16 times as much, which still is less than a second.
_MAX_COST = 18
_MAX_MEMORY = 512 * 1024 * 1024

_PREFIX = "$scrypt$"
_HASH = re.compile(r"\$scrypt\$ln=(\d{1,2}),r=(\d{1,2}),p=(\d)\$([A-Za-z0-9+/]{11,})=*\$([A-Za-z0-9+/]{22,})=*\Z")


class UsersError(CallerError):
    """A file of users is not usable; the message names file, line and reason, never a password."""


@attrs.frozen
class _Hash:
    cost: int
    block: int
    parallel: int
    salt: bytes
    digest: bytes

    @classmethod
    def parse(cls, text: str) -> _Hash | None:
        """A hash from its text; None if it is malformed, or would cost too much."""
        match = _HASH.match(text)
        if match is None:
            return None
        cost, block, parallel = int(match[1]), int(match[2]), int(match[3])
        try:
            salt, digest = _from_base64(match[4]), _from_base64(match[5])
        except binascii.Error:
            return None
        if not (1 <= cost <= _MAX_COST and block and parallel) or 128 * block * parallel << cost > _MAX_MEMORY:
            return None
        return cls(cost, block, parallel, salt, digest)

    def matches(self, password: str) -> bool:
        """Whether it is the hash of `password`."""
        found = hashlib.scrypt(
            password.encode(),
            salt=self.salt,
            n=1 << self.cost,
            r=self.block,
            p=self.parallel,
            maxmem=2 * _MAX_MEMORY,
            dklen=len(self.digest),
        )
        return hmac.compare_digest(found, self.digest)


#: What an unknown user's password is compared with, so that the time gives no hint.
_NOBODY = _Hash(_COST, _BLOCK, _PARALLEL, b"nobody's salt", bytes(32))


def hash_password(password: str) -> str:
    """The hash of a password with a new salt, for a file of users."""
    salt = os.urandom(16)
    digest = hashlib.scrypt(
        password.encode(), salt=salt, n=1 << _COST, r=_BLOCK, p=_PARALLEL, maxmem=_MAX_MEMORY, dklen=32
    )
    return f"{_PREFIX}ln={_COST},r={_BLOCK},p={_PARALLEL}${_to_base64(salt)}${_to_base64(digest)}"


class Users:
    """Who may log in. Belongs to one event loop.

    Attributes:
        plain: names of the users whose passwords are plain text.
    """

    def __init__(self, passwords: Mapping[str, str]) -> None:
        """Args:

        passwords: by user: plain, or texts made by `hash_password`.

        Raises:
            UsersError: a text begins as a hash but is none.
        """
        self._passwords = dict(passwords)
        self._hashes: dict[str, _Hash] = {}
        for name, text in passwords.items():
            if text.startswith(_PREFIX):
                found = _Hash.parse(text)
                if found is None:
                    raise UsersError(f"user {name!r}: the hash of the password is malformed")
                self._hashes[name] = found
        self.plain = tuple(name for name in passwords if name not in self._hashes)
        self._key = os.urandom(32)
        #: Digests of passwords that were right.
        self._right: dict[str, bytes] = {}

    def matches(self, name: str, password: str) -> bool:
        """Whether `name` is a user with this password. The time that it takes does not tell whether there is one.

        May compute a hash, which takes some hundredths of a second: see `matches_at_once`.
        """
        at_once = self.matches_at_once(name, password)
        if at_once is not None:
            return at_once
        right = self.hash_matches(name, password)
        if right:
            self.remember(name, password)
        return right

    def matches_at_once(self, name: str, password: str) -> bool | None:
        """As `matches`, but None if a hash has to be computed: by `hash_matches`, then `remember`."""
        given = self._digest(password)
        if name in self._hashes or (self._hashes and name not in self._passwords):
            right = self._right.get(name)
            return True if right is not None and hmac.compare_digest(right, given) else None
        expected = self._digest(self._passwords.get(name, ""))
        return hmac.compare_digest(given, expected) and name in self._passwords

    def hash_matches(self, name: str, password: str) -> bool:
        """Whether the password fits the hash of a user. Takes long, and may be called on any thread."""
        return self._hashes.get(name, _NOBODY).matches(password) and name in self._hashes

    def remember(self, name: str, password: str) -> None:
        """A password was right: it needs no hash the next time."""
        self._right[name] = self._digest(password)

    def _digest(self, password: str) -> bytes:
        return hmac.digest(self._key, password.encode(), "sha256")


def read_users(path: str | Path) -> dict[str, str]:
    """Read a file of lines ``name:password`` or ``name:hash``. Empty lines and lines that start with ``#`` are ignored.

    Returns:
        passwords and hashes by user.

    Raises:
        UsersError: the file cannot be read, or a line is invalid.
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
            raise UsersError(f"{path}:{number}: expected name:password")
        if name in users:
            raise UsersError(f"{path}:{number}: user {name!r} is defined twice")
        if password.startswith(_PREFIX) and _Hash.parse(password) is None:
            raise UsersError(f"{path}:{number}: the hash of user {name!r} is malformed")
        users[name] = password
    if not users:
        raise UsersError(f"{path}: no users")
    return users


def _to_base64(data: bytes) -> str:
    return base64.b64encode(data).decode().rstrip("=")


def _from_base64(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
