"""Who may log in, by which password.

Computing a hash takes some hundredths of a second and memory on purpose, so a password that was right once is
remembered, as a digest under a key of this process: who connects again does not wait.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Collection, Mapping

from qmf.sasl.results import Authenticated, Pending, Rejected, Result
from qmf.sasl.scram import ScramKeys
from qmf.users.verifiers import PlainTextVerifier, UsersError, Verifier, parse_verifier

#: Iterations that keys of unknown users pretend to have: those of new ones.
_PRETENDED_ITERATIONS = 50_000


class Users:
    """Who may log in. Belongs to one event loop.

    Attributes:
        plain: names of the users whose passwords are plain text.
    """

    def __init__(self, passwords: Mapping[str, str]) -> None:
        """Make the users of a server.

        Args:
            passwords: by user: plain, or texts of a file of users (`qmf.users.verifiers`).

        Raises:
            UsersError: a text begins as a hash or as keys but is none.
        """
        self._verifiers: dict[str, Verifier] = {}
        for name, text in passwords.items():
            try:
                verifier, enabled = parse_verifier(text)
            except UsersError as error:
                raise UsersError(f"user {name!r}: {error}") from error
            if enabled:
                self._verifiers[name] = verifier
        self.plain = tuple(
            name for name, verifier in self._verifiers.items() if isinstance(verifier, PlainTextVerifier)
        )
        #: What an unknown user's password is compared with, so that the time gives no hint.
        self._decoy = next((verifier for verifier in self._verifiers.values() if verifier.slow), None)
        self._key = os.urandom(32)
        #: Digests of passwords that were right.
        self._right: dict[str, bytes] = {}

    @property
    def names(self) -> Collection[str]:
        """The users who may log in."""
        return self._verifiers.keys()

    def matches(self, name: str, password: str) -> bool:
        """Whether `name` is a user with this password. The time that it takes does not show whether there is one.

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
        verifier = self._verifiers.get(name)
        if verifier is None:
            return None if self._decoy is not None else False
        if not verifier.slow:
            return verifier.matches(password)
        right = self._right.get(name)
        return True if right is not None and hmac.compare_digest(right, self._digest(password)) else None

    def hash_matches(self, name: str, password: str) -> bool:
        """Whether the password fits the hash of a user. Takes long, and may be called on any thread."""
        verifier = self._verifiers.get(name, self._decoy)
        return verifier is not None and verifier.matches(password) and name in self._verifiers

    def remember(self, name: str, password: str) -> None:
        """A password was right: it needs no hash the next time."""
        self._right[name] = self._digest(password)

    def check_password(self, user: str, password: str) -> Result:
        """See `qmf.sasl.server.Passwords`."""

        def result(right: bool) -> Authenticated | Rejected:
            return Authenticated(user) if right else Rejected("unknown user or wrong password")

        def compute() -> Authenticated | Rejected:
            right = self.hash_matches(user, password)
            if right:
                self.remember(user, password)
            return result(right)

        right = self.matches_at_once(user, password)
        return Pending(compute) if right is None else result(right)

    def has_scram_keys(self, mechanism: str) -> bool:
        """Whether all users can log in with a SCRAM mechanism: a client takes the strongest one that is offered."""
        return all(
            isinstance(verifier, PlainTextVerifier) or verifier.scram_keys(mechanism) is not None
            for verifier in self._verifiers.values()
        )

    def scram_keys(self, name: str, mechanism: str) -> ScramKeys:
        """Keys of a user; of an unknown one, keys that no password has, the same each time."""
        verifier = self._verifiers.get(name)
        keys = None if verifier is None else verifier.scram_keys(mechanism)
        if keys is not None:
            return keys
        size = 64 if mechanism == "SCRAM-SHA-512" else 32
        salt = hmac.digest(self._key, f"salt of {name}".encode(), "sha256")[:16]
        unknown = hashlib.shake_256(self._key + mechanism.encode() + name.encode()).digest(2 * size)
        return ScramKeys(salt, _PRETENDED_ITERATIONS, unknown[:size], unknown[size:])

    def _digest(self, password: str) -> bytes:
        return hmac.digest(self._key, password.encode(), "sha256")
