"""What records durable queues and their messages, as the core and the links see it; see `qmf.broker.store.journal`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from qmf.broker.nodes.entries import Entry
from qmf.errors import QmfError


class NotStored(QmfError):
    """Changes could not be written to the disk.

    Attributes:
        reason: in a few words.
    """

    reason: str


#: Called with None when changes are on the disk, and with the reason when they are not and will not be.
OnStored = Callable[[NotStored | None], None]


class Recorder(Protocol):
    """Records what happens to durable queues.

    Changes that belong together are a unit: on the disk whole, or not at all. Changes are part of the current unit. Who
    waits for some calls `flush` before them and `close_unit` after them.
    """

    def flush(self) -> None:
        """Close the current unit on behalf of nobody: it is written, however long that takes."""

    def close_unit(self, on_stored: OnStored | None) -> bool:
        """Close the current unit.

        Args:
            on_stored: called when the unit is on the disk, or has failed: the messages that it brought have left
                their queues then. None where nobody waits.

        Returns:
            False if there is nothing to write: `on_stored` is not called.
        """

    def is_stored(self, record: int) -> bool:
        """True if the message of an entry (`Entry.record`) is on the disk, or was."""

    def when_stored(self, callback: Callable[[], None]) -> None:
        """Call something once, after messages that are on their way to the disk are there, or could not be stored."""

    def acknowledge(self, entry: Entry) -> None:
        """An entry will leave its queue when the current unit is written; if that fails, it stays recorded."""
