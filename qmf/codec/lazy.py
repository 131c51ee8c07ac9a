"""Values that stay bytes until they are read."""

from __future__ import annotations

import abc
from collections.abc import Iterator, Mapping
from typing import Self


class LazyValues(Mapping[str, object]):
    """Values by name, each unpacked anew whenever it is asked for. Read-only; compares like any mapping."""

    __slots__ = ()

    @property
    @abc.abstractmethod
    def names(self) -> tuple[str, ...]:
        """The names, in order; mostly one tuple for all that look alike."""

    @abc.abstractmethod
    def unpacked(self) -> dict[str, object]:
        """All values, as a dictionary of its own."""

    @abc.abstractmethod
    def raw(self) -> bytes:
        """The bytes of these values: equal bytes of one `layout` are equal values."""

    @property
    @abc.abstractmethod
    def layout(self) -> object:
        """What tells the meaning of the bytes."""

    @abc.abstractmethod
    def detached(self) -> Self:
        """The same with bytes of its own: for who keeps one object out of a large message."""

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return repr(self.unpacked())
