"""What consoles may change in the process of the daemon."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from qmf.broker.daemon.log_output import LogWriter
from qmf.broker.daemon.log_rules import NOTICE, LogRules

log = logging.getLogger("qmf.broker")

#: Seconds for the answer to the console that ends the broker.
ANSWER_TIME = 0.1


class DaemonControl:
    """A `ProcessControl` for the log and the end of the daemon.

    Attributes:
        on_shutdown: called when a console ends the process.
    """

    def __init__(self, writer: LogWriter) -> None:
        self._writer = writer
        self.on_shutdown: Callable[[], object] = lambda: None

    @property
    def log_rules(self) -> str:
        return str(self._writer.rules)

    def set_log_rules(self, text: str) -> None:
        self._writer.rules = LogRules.parse_text(text)
        log.log(NOTICE, "log rules are now %s", text)

    @property
    def precise_times(self) -> bool:
        return self._writer.precise

    def set_precise_times(self, precise: bool) -> None:
        self._writer.precise = precise

    def shut_down(self) -> None:
        log.log(NOTICE, "a console ends the broker")
        asyncio.get_running_loop().call_later(ANSWER_TIME, self.on_shutdown)
