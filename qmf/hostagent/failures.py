"""Readings that failed: logged once, counted always.

A reading that fails once usually fails at every sample, so only the first failure is logged. When the reading works
again, the next failure is logged again.
"""

from __future__ import annotations

import logging

logger = logging.getLogger("qmf.hostagent")


class ReadingFailures:
    """The readings that fail at the moment.

    Attributes:
        count: failed readings since the start.
    """

    def __init__(self) -> None:
        self.count = 0
        self._failing: set[str] = set()

    def on_failure(self, what: str, error: Exception) -> None:
        """Record that a reading failed.

        Args:
            what: the reading, e.g. ``usage of /home``; the same text each time.
            error: the reason.
        """
        self.count += 1
        if what in self._failing:
            logger.debug("Still cannot read %s: %s", what, error)
            return
        self._failing.add(what)
        logger.warning("Cannot read %s: %s", what, str(error) or type(error).__name__)

    def on_success(self, what: str) -> None:
        """Record that a reading worked."""
        if what in self._failing:
            self._failing.discard(what)
            logger.info("Can read %s again", what)
