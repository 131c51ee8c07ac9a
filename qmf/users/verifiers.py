"""What a password is checked with, as texts of a file of users: plain text, scrypt, or SCRAM keys.

- a hash ``$scrypt$ln=14,r=8,p=1$SALT$HASH`` (RFC 7914; salt and hash in base64), which other programs use, too;
- SCRAM keys ``SCRAM-SHA-256$ITERATIONS:SALT$STORED:SERVER``, as PostgreSQL writes them, several with blanks between;
- anything else is the password itself.

``!`` in front of a text disables the user.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import re
from collections.abc import Mapping
from typing import Protocol

import attrs

from qmf.errors import CallerError
from qmf.sasl.mechanism import SaslError
from qmf.sasl.scram import SCRAM_NAMES, ScramKeys, make_keys

#: Cost of new hashes: 2 to this power, with `_BLOCK` and `_PARALLEL` as RFC 7914 names them.
_COST, _BLOCK, _PARALLEL = 14, 8, 1
#: A hash that is read may cost 16 times as much, which still is less than a second.
_MAX_COST = 18
_MAX_MEMORY = 512 * 1024 * 1024
#: Iterations of new SCRAM keys: a login costs the client some tens of milliseconds. Others may have 50 times as many.
_ITERATIONS = 50_000
_MIN_ITERATIONS, _MAX_ITERATIONS = 4096, 2_500_000

_SCRYPT_PREFIX = "$scrypt$"
_SCRAM_PREFIX = "SCRAM-SHA-"
_DISABLED = "!"
_SCRYPT = re.compile(r"\$scrypt\$ln=(\d{1,2}),r=(\d{1,2}),p=(\d)\$([A-Za-z0-9+/]{11,})=*\$([A-Za-z0-9+/]{22,})=*\Z")
_SCRAM = re.compile(rf"({'|'.join(SCRAM_NAMES)})\$(\d{{1,7}}):([A-Za-z0-9+/=]+)\$([A-Za-z0-9+/=]+):([A-Za-z0-9+/=]+)\Z")


class UsersError(CallerError):
    """A file of users, or a user, is not as it must be; the message names what and where, never a password."""


class Verifier(Protocol):
    """What a password is checked with."""

    @property
    def slow(self) -> bool:
        """Whether `matches` takes some hundredths of a second, and memory, on purpose."""

    def matches(self, password: str) -> bool:
        """Whether the password is the right one."""

    def scram_keys(self, name: str) -> ScramKeys | None:
        """Keys for a SCRAM mechanism; None if this verifier has none."""


class PlainTextVerifier:
    """The password itself."""

    slow = False

    def __init__(self, password: str) -> None:
        self._password = password
        self._keys: dict[str, ScramKeys] = {}

    def matches(self, password: str) -> bool:
        """See `Verifier`."""
        return hmac.compare_digest(self._password.encode(), password.encode())

    def scram_keys(self, name: str) -> ScramKeys | None:
        """See `Verifier`."""
        if name not in self._keys:
            self._keys[name] = make_keys(name, self._password, iterations=_MIN_ITERATIONS)
        return self._keys[name]


@attrs.frozen
class ScryptVerifier:
    """A hash by scrypt."""

    cost: int
    block: int
    parallel: int
    salt: bytes
    digest: bytes
    slow = True

    def matches(self, password: str) -> bool:
        """See `Verifier`."""
        computed = hashlib.scrypt(
            password.encode(),
            salt=self.salt,
            n=1 << self.cost,
            r=self.block,
            p=self.parallel,
            maxmem=2 * _MAX_MEMORY,
            dklen=len(self.digest),
        )
        return hmac.compare_digest(computed, self.digest)

    def scram_keys(self, name: str) -> ScramKeys | None:  # noqa: ARG002
        """See `Verifier`."""
        return None


@attrs.frozen
class ScramVerifier:
    """Keys of SCRAM mechanisms, by their names."""

    keys: Mapping[str, ScramKeys]
    slow = True

    def matches(self, password: str) -> bool:
        """See `Verifier`."""
        name, keys = next(iter(self.keys.items()))
        try:
            computed = make_keys(name, password, iterations=keys.iterations, salt=keys.salt)
        except SaslError:  # characters that no password has
            return False
        return hmac.compare_digest(computed.stored_key, keys.stored_key)

    def scram_keys(self, name: str) -> ScramKeys | None:
        """See `Verifier`."""
        return self.keys.get(name)


def parse_verifier(text: str) -> tuple[Verifier, bool]:
    """The verifier of a text, and whether its user is enabled.

    Raises:
        UsersError: the text begins as a hash or as keys, and is malformed or would cost too much.
    """
    enabled = not text.startswith(_DISABLED)
    text = text.removeprefix(_DISABLED)
    if text.startswith(_SCRYPT_PREFIX):
        return _parse_scrypt(text), enabled
    if text.startswith(_SCRAM_PREFIX):
        return _parse_scram(text), enabled
    return PlainTextVerifier(text), enabled


def describe_verifier(text: str) -> tuple[str, str]:
    """The kind of a verifier, and whether its user is enabled, as words for a table."""
    verifier, enabled = parse_verifier(text)
    match verifier:
        case ScramVerifier():
            kind = ", ".join(verifier.keys)
        case ScryptVerifier():
            kind = "scrypt"
        case _:
            kind = "plain text"
    return kind, "enabled" if enabled else "disabled"


def enable_verifier(text: str, enabled: bool) -> str:
    """The text of a verifier whose user is enabled, or disabled."""
    text = text.removeprefix(_DISABLED)
    return text if enabled else _DISABLED + text


def hash_password(password: str) -> str:
    """The scrypt hash of a password with a new salt, for a file of users."""
    salt = os.urandom(16)
    digest = hashlib.scrypt(
        password.encode(), salt=salt, n=1 << _COST, r=_BLOCK, p=_PARALLEL, maxmem=_MAX_MEMORY, dklen=32
    )
    return f"{_SCRYPT_PREFIX}ln={_COST},r={_BLOCK},p={_PARALLEL}${_to_base64(salt)}${_to_base64(digest)}"


def scram_text(password: str) -> str:
    """SCRAM keys of a password with new salts, for a file of users: for all mechanisms.

    Raises:
        UsersError: the password has characters that SASL does not permit, or the library scramp is missing.
    """
    texts = []
    for name in SCRAM_NAMES:
        try:
            keys = make_keys(name, password, iterations=_ITERATIONS)
        except SaslError as error:
            raise UsersError(str(error)) from error
        salt, stored, server = (
            base64.b64encode(part).decode() for part in (keys.salt, keys.stored_key, keys.server_key)
        )
        texts.append(f"{name}${keys.iterations}:{salt}${stored}:{server}")
    return " ".join(texts)


def _parse_scrypt(text: str) -> ScryptVerifier:
    match = _SCRYPT.match(text)
    if match is None:
        raise UsersError("the hash of the password is malformed")
    cost, block, parallel = int(match[1]), int(match[2]), int(match[3])
    salt, digest = _from_base64(match[4]), _from_base64(match[5])
    if not (1 <= cost <= _MAX_COST and block and parallel) or 128 * block * parallel << cost > _MAX_MEMORY:
        raise UsersError("the hash of the password would cost too much to compute")
    return ScryptVerifier(cost, block, parallel, salt, digest)


def _parse_scram(text: str) -> ScramVerifier:
    keys: dict[str, ScramKeys] = {}
    for part in text.split():
        match = _SCRAM.match(part)
        if match is None:
            raise UsersError("the SCRAM keys are malformed")
        iterations = int(match[2])
        if not _MIN_ITERATIONS <= iterations <= _MAX_ITERATIONS:
            raise UsersError(f"SCRAM keys have {_MIN_ITERATIONS} to {_MAX_ITERATIONS} iterations, not {iterations}")
        salt, stored, server = (_from_base64(match[group]) for group in (3, 4, 5))
        size = 64 if match[1] == "SCRAM-SHA-512" else 32
        if len(stored) != size or len(server) != size:
            raise UsersError(f"keys of {match[1]} have {size} bytes")
        keys[match[1]] = ScramKeys(salt, iterations, stored, server)
    return ScramVerifier(keys)


def _to_base64(data: bytes) -> str:
    return base64.b64encode(data).decode().rstrip("=")


def _from_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4), validate=True)
    except binascii.Error as error:
        raise UsersError("a part of a hash or key is not base64") from error
