"""Readings that failed: logged once, counted always.

A machine that refuses a reading refuses it at every sample; one line in the log is enough. When the reading works
again, the next failure is news again.
"""

from __future__ import annotations

import logging

logger = logging.getLogger("qmf.hostagent")


class Failures:
    """Which readings fail at the moment.

    Attributes:
        count: failed readings since the start.
    """

    def __init__(self) -> None:
        self.count = 0
        self._failing: set[str] = set()

    def failed(self, what: str, error: Exception) -> None:
        """A reading failed.

        Args:
            what: the reading, e.g. ``usage of /home``; the same text each time.
            error: why.
        """
        self.count += 1
        if what in self._failing:
            logger.debug("Still cannot read %s: %s", what, error)
            return
        self._failing.add(what)
        logger.warning("Cannot read %s: %s", what, str(error) or type(error).__name__)

    def worked(self, what: str) -> None:
        """A reading worked."""
        if what in self._failing:
            self._failing.discard(what)
            logger.info("Can read %s again", what)
