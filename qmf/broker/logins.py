"""Who may log in to a broker, by whatever protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from qmf.broker.client_info import ClientInfo
from qmf.sasl.gssapi import KerberosService
from qmf.sasl.results import Authenticated, Rejected
from qmf.sasl.scram import PLUS, SCRAM_NAMES
from qmf.sasl.server import Authenticator, Tokens
from qmf.users.delays import FailureDelays
from qmf.users.users import Users

#: Results that are computed at the same time; a hash takes 16 MB and a processor.
_CHECKS = 2

#: Wrong passwords of a user from an address before there is a delay.
FREE_FAILURES = 10

#: Mechanisms in which a user has a password. That of PLAIN may be a token.
_BY_PASSWORD = frozenset({"PLAIN", *SCRAM_NAMES, *(name + PLUS for name in SCRAM_NAMES)})


class Logins:
    """The users of a broker, and the threads on which hashes of their passwords are computed.

    Attributes:
        authenticator: decides who clients are.
        failures: makes whoever has had wrong passwords wait.
    """

    def __init__(
        self,
        users: Users | None,
        tokens: Tokens | None = None,
        *,
        certificates: bool = False,
        kerberos: KerberosService | None = None,
        mechanisms: Sequence[str] | None = None,
    ) -> None:
        """Make the logins of a broker; the arguments are those of `Authenticator`."""
        self._tokens = tokens
        self._certificates = certificates
        self._kerberos = kerberos
        self._mechanisms = mechanisms
        self._threads: ThreadPoolExecutor | None = None
        self._users = users
        self.failures = FailureDelays(FREE_FAILURES)
        self.authenticator = self._make_authenticator(users)

    def set_users(self, users: Users) -> None:
        """Others may log in from now on; see `refusal` for clients that are connected."""
        self._users = users
        self.authenticator = self._make_authenticator(users)

    def refusal(self, info: ClientInfo) -> str:
        """Why a client could not log in now, if it did so by a password; empty if it could with the right one."""
        by_password = info.mechanism in _BY_PASSWORD and info.token_end is None
        if not by_password or self._users is None or info.user in self._users.names:
            return ""
        return f"user {info.user!r} may not log in any more"

    def _make_authenticator(self, users: Users | None) -> Authenticator:
        return Authenticator(
            users,
            self._tokens,
            certificates=self._certificates,
            kerberos=self._kerberos,
            mechanisms=self._mechanisms,
        )

    def check_elsewhere(
        self, compute: Callable[[], Authenticated | Rejected], take: Callable[[Authenticated | Rejected], None]
    ) -> None:
        """Compute a result on a thread: it takes some hundredths of a second, in which others go on.

        Args:
            compute: called on a thread.
            take: called with the result on the loop's thread; not if `compute` fails.
        """
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_CHECKS, thread_name_prefix="qmf-broker-users")
        computing = asyncio.get_running_loop().run_in_executor(self._threads, compute)

        def finish(future: asyncio.Future[Authenticated | Rejected]) -> None:
            if not future.cancelled():
                take(future.result())

        computing.add_done_callback(finish)

    def close(self) -> None:
        """End the threads."""
        threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown(cancel_futures=True)
