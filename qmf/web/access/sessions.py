"""Sessions of browsers: in memory, so that they end with the server. A session is a random secret in a cookie."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable

import attrs

from qmf.web.scopes import Scope

#: Sessions of one user; with one more, the one that was not used for longest ends.
MAX_PER_USER = 20


@attrs.frozen
class SessionUser:
    """Whose session it is.

    Attributes:
        name: of the user.
        scopes: what that user may do.
        groups: of the user, as an identity provider says.
    """

    name: str
    scopes: frozenset[Scope]
    groups: frozenset[str] = frozenset()


@attrs.define
class _Session:
    user: SessionUser
    begun: float
    used: float


class Sessions:
    """The sessions of all users."""

    def __init__(self, idle: float, life: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin without sessions.

        Args:
            idle: seconds without a request after which a session ends.
            life: seconds after which it ends in any case.
            clock: the time in seconds.
        """
        self._idle = idle
        self._life = life
        self._clock = clock
        self._sessions: dict[str, _Session] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, user: SessionUser) -> str:
        """Begin a session; returns its secret."""
        for ended in [secret for secret, item in self._sessions.items() if self._has_ended(item)]:
            del self._sessions[ended]
        own = sorted((item.used, secret) for secret, item in self._sessions.items() if item.user.name == user.name)
        for _, secret in own[: max(0, len(own) - MAX_PER_USER + 1)]:
            del self._sessions[secret]
        secret = secrets.token_urlsafe(32)
        now = self._clock()
        self._sessions[secret] = _Session(user, now, now)
        return secret

    def use(self, secret: str) -> SessionUser | None:
        """The user of a session, which is used now; None when there is no such session any more."""
        user = self.user_of(secret)
        if user is not None:
            self._sessions[secret].used = self._clock()
        return user

    def user_of(self, secret: str) -> SessionUser | None:
        """The user of a session, without using it; None when there is no such session any more."""
        session = self._sessions.get(secret)
        if session is None:
            return None
        if self._has_ended(session):
            del self._sessions[secret]
            return None
        return session.user

    def end(self, secret: str) -> None:
        """End a session, if there is one."""
        self._sessions.pop(secret, None)

    def _has_ended(self, session: _Session) -> bool:
        now = self._clock()
        return now - session.used > self._idle or now - session.begun > self._life
