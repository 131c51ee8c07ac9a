"""What programs import from `qpid.log`: logs to a stream, and the levels."""

from __future__ import annotations

from logging import CRITICAL, DEBUG, ERROR, INFO, WARN, Formatter, StreamHandler, getLogger
from typing import TextIO

__all__ = ["CRITICAL", "DEBUG", "ERROR", "INFO", "WARN", "enable"]


def enable(name: str | None = None, level: int = WARN, file: TextIO | None = None) -> None:
    """Write the records of a logger, and of those below it, to a stream.

    Args:
        name: of the logger; None for all. Those of this API are ``qmf.messaging`` and below, for which ``qpid`` and the
            names below it stand.
        level: the least level that is written.
        file: the stream; None for standard error.
    """
    if name is not None and (name == "qpid" or name.startswith("qpid.")):
        name = "qmf.messaging"
    handler = StreamHandler(file)
    handler.setFormatter(Formatter("%(asctime)s %(levelname)s %(message)s"))
    log = getLogger(name)
    log.addHandler(handler)
    log.setLevel(level)
