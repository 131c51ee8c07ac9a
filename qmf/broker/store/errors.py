"""The errors of the store."""

from __future__ import annotations

from pathlib import Path

from qmf.broker.nodes.recorder import NotStored


class StoreError(NotStored):
    """The store cannot be opened, or cannot write.

    Attributes:
        path: the folder or the file.
        reason: what is wrong, in a few words.
    """

    def __init__(self, path: Path, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(path, reason)

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


class DiskFull(StoreError):
    """There is no room for what is to be stored."""


class StoreLocked(StoreError):
    """Another process holds the data folder."""


class StoreDamaged(StoreError):
    """The store's file is not what the broker wrote."""


class StoreVersionError(StoreError):
    """The store was written by a version of the broker with other tables."""
