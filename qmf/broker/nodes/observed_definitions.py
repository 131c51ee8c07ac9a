"""What observers see of all that consoles create and that transfers messages by itself."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Protocol


class ObservedDefinition(Hashable, Protocol):
    """What consoles create, and the store may keep. Compared by identity."""

    @property
    def kind(self) -> str:
        """Of which type consoles create it."""

    @property
    def name(self) -> str:
        """Its name among those of its kind."""

    @property
    def durable(self) -> bool:
        """It is there again after a restart."""

    @property
    def fields(self) -> Mapping[str, object]:
        """From which it is made again."""


class ObservedState(Protocol):
    """In which state something is that transfers messages."""

    @property
    def state_name(self) -> str:
        """Its state, in qpidd's words for links."""

    @property
    def reason(self) -> str:
        """Why it transfers nothing, or what it lacks; empty if all is well."""

    @property
    def since(self) -> float:
        """When it came into this state, in seconds since 1970."""
