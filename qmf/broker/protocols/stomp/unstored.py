"""What a client has sent, and that is not on the disk yet: so much of it that the client is not read from."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from qmf.broker.nodes.recorder import NotStored, Recorder

#: Frames that may wait.
MAX_FRAMES = 1000


class UnstoredFrames:
    """The frames of one client that bring messages, until these are stored.

    Frames without a receipt are stored together, those of one turn of the loop.
    """

    def __init__(
        self,
        recorder: Recorder | None,
        max_size: int,
        *,
        hold: Callable[[], None],
        release: Callable[[], None],
        fail: Callable[[NotStored], None],
    ) -> None:
        """Begin without frames.

        Args:
            recorder: of the broker; None if nothing is stored.
            max_size: bytes of their bodies that may wait.
            hold: called when more wait than may; nothing is to be read from the client then.
            release: called when none wait any more.
            fail: called when some could not be stored.
        """
        self._recorder = recorder
        self._max_size = max_size
        self._hold = hold
        self._release = release
        self._fail = fail
        self._count = self._size = 0
        self._turn_count = self._turn_size = 0

    def open(self, size: int) -> None:
        """A frame without a receipt comes, with a body of so many bytes; its unit is that of its turn."""
        if self._recorder is not None:
            if not self._turn_count:
                self._recorder.flush()
            self._turn_count += 1
            self._turn_size += size

    def close(self) -> None:
        """The turn ends, or something else comes that is stored by itself."""
        if self._recorder is None or not self._turn_count:
            return
        count, size = self._turn_count, self._turn_size
        self._turn_count = self._turn_size = 0
        if self._recorder.close_unit(partial(self._on_stored, count, size)):
            self.add(count, size)

    def add(self, count: int, size: int) -> None:
        """Frames wait for the disk."""
        self._count += count
        self._size += size
        if self._count > MAX_FRAMES or self._size > self._max_size:
            self._hold()

    def remove(self, count: int, size: int) -> None:
        """They do not wait any more."""
        self._count -= count
        self._size -= size
        if not self._count:
            self._release()

    def _on_stored(self, count: int, size: int, error: NotStored | None) -> None:
        self.remove(count, size)
        if error is not None:
            self._fail(error)
