"""Opens a bus whose broker may not be there yet."""

from __future__ import annotations

import asyncio
import logging

from qmf.bus.backoff import Backoff
from qmf.bus.base import Bus
from qmf.errors import AuthenticationError, ConnectError

log = logging.getLogger("qmf.bus")


async def open_when_there(
    bus: Bus,
    timeout: float,
    *,
    failure: ConnectError | None = None,
    refusals: bool = False,
    backoff: Backoff | None = None,
) -> None:
    """Open a bus, and try again with back-off until that succeeds. When cancelled, the bus can be opened again.

    The first failure, and each with another reason than the one before, is logged as a warning; so is the success
    after a failure.

    Args:
        bus: not open yet.
        timeout: seconds for each attempt.
        failure: the error of an attempt that was made already.
        refusals: try again even if the broker refuses the user: it may learn of him later.
        backoff: waits between attempts.

    Raises:
        AuthenticationError: the broker refused the user or the password, and `refusals` is False.
        BusStateError: the bus is open or closed already.
    """
    delays = (backoff or Backoff()).delays()
    reason = ""
    while True:
        if failure is None:
            try:
                await bus.open(timeout)
            except AuthenticationError as error:
                if not refusals:
                    raise
                failure = error
            except ConnectError as error:
                failure = error
            else:
                if reason:
                    log.warning("connected to %s", bus.url)
                return
        wait = next(delays)
        level = logging.INFO if failure.reason == reason else logging.WARNING
        log.log(level, "%s; trying again in %.1f s", failure, wait)
        reason, failure = failure.reason, None
        await asyncio.sleep(wait)
