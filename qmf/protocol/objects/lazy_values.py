"""Values that stay bytes until they are read."""

from __future__ import annotations

import abc
from collections.abc import Iterator, Mapping
from typing import Any, Self


class LazyValues(Mapping[str, object]):
    """Values by name, each unpacked anew whenever it is asked for. Read-only; compares like any mapping.

    Copies (`copy`, `pickle`) are dictionaries: what gives the bytes their meaning is shared, and stays where it is.
    """

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
        """What gives the bytes their meaning."""

    @abc.abstractmethod
    def detached(self) -> Self:
        """The same with bytes of its own, to keep one object of a large message."""

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __eq__(self, other: object) -> bool:
        # Unpacked twice, NaN is not the same NaN.
        return self is other or super().__eq__(other)

    __hash__ = None  # type: ignore[assignment]  # like a dictionary

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (self.unpacked(),)

    def __repr__(self) -> str:
        return repr(self.unpacked())
