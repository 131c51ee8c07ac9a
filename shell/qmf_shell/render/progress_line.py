"""A line on stderr that shows the progress of a long command. Only on a terminal; removed when the command ends."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import TextIO

from qmf.views.text import clean

#: Seconds before the line is shown: most commands are finished earlier.
DELAY = 0.5
#: Seconds between updates of the line.
_STEP = 0.2
_SIGNS = "-\\|/"


class ProgressLine:
    """Shows the progress of a command."""

    def __init__(self, err: TextIO, *, enabled: bool) -> None:
        """Make a line that is not shown.

        Args:
            err: the stream to draw on.
            enabled: it is a terminal that supports carriage returns.
        """
        self._err = err
        self._enabled = enabled
        self._text = ""
        self._wake = threading.Condition()
        self._running = False
        self._paused = False
        self._drawn = False

    def report(self, text: str) -> None:
        """Set the text of the line; may be called from any thread."""
        self._text = text

    @contextlib.contextmanager
    def busy(self) -> Iterator[None]:
        """Show the line after `DELAY` seconds, until the block ends."""
        if not self._enabled:
            yield
            return
        self._text, self._running = "", True
        thread = threading.Thread(target=self._run, args=(time.monotonic(),), name="qmf-shell-progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            with self._wake:
                self._running = False
                self._wake.notify()
            thread.join()

    @contextlib.contextmanager
    def pause(self) -> Iterator[None]:
        """Hide the line while the block uses the terminal."""
        with self._wake:
            self._paused = True
            self._clear()
        try:
            yield
        finally:
            with self._wake:
                self._paused = False

    def _run(self, start: float) -> None:
        with self._wake:
            self._wake.wait_for(lambda: not self._running, DELAY)
            number = 0
            while self._running:
                if not self._paused:
                    self._draw(number, time.monotonic() - start)
                number += 1
                self._wake.wait_for(lambda: not self._running, _STEP)
            self._clear()

    def _draw(self, number: int, seconds: float) -> None:
        text = clean(self._text) or "waiting for an answer"
        with contextlib.suppress(OSError, ValueError):
            self._err.write(f"\r{_SIGNS[number % len(_SIGNS)]} {text[:60]}, {seconds:.0f} s (Ctrl-C cancels)\x1b[K")
            self._err.flush()
        self._drawn = True

    def _clear(self) -> None:
        if self._drawn:
            with contextlib.suppress(OSError, ValueError):
                self._err.write("\r\x1b[K")
                self._err.flush()
            self._drawn = False
