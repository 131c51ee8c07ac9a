"""Who may log in to a broker, by whatever protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from qmf._users import Users

#: Passwords whose hashes are computed at the same time; each takes 16 MB and a processor.
_CHECKS = 2


class Logins:
    """The users of a broker, and the threads on which hashes of their passwords are computed.

    Attributes:
        users: None lets everybody in. May be set: others may log in then; clients that are connected stay.
    """

    def __init__(self, users: Users | None) -> None:
        self.users = users
        self._threads: ThreadPoolExecutor | None = None

    def check_elsewhere(self, check: Callable[[], bool], checked: Callable[[bool], None]) -> None:
        """Compute the hash of a password on a thread: it takes some hundredths of a second, in which others go on.

        Args:
            check: computes it; called on a thread.
            checked: called with its result on the loop's thread; not if `check` fails.
        """
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_CHECKS, thread_name_prefix="qmf-broker-users")
        found = asyncio.get_running_loop().run_in_executor(self._threads, check)

        def done(future: asyncio.Future[bool]) -> None:
            if not future.cancelled():
                checked(future.result())

        found.add_done_callback(done)

    def close(self) -> None:
        """End the threads."""
        threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown(cancel_futures=True)
