"""Values that stay bytes until they are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from qmf._compile import filler


class ValuesLayout(Protocol):
    """What gives the bytes of values their meaning. Where the values are in some data, it describes in its own way."""

    def get(self, data: bytes, at: Any, name: str) -> object:
        """One value; raises KeyError for a name that has none."""

    def has(self, data: bytes, at: Any, name: object) -> bool:
        """True for a name that has a value."""

    def names_of(self, data: bytes, at: Any) -> tuple[str, ...]:
        """The names, in order; mostly one tuple for all that look alike."""

    def unpack(self, data: bytes, at: Any) -> dict[str, object]:
        """All values, in order."""

    def raw(self, data: bytes, at: Any) -> bytes:
        """The bytes of the values: equal bytes are equal values."""

    def detach(self, data: bytes, at: Any) -> tuple[bytes, Any]:
        """Bytes that hold these values alone, and where they are in them."""


class LazyValues(Mapping[str, object]):
    """Values by name, each unpacked anew whenever it is asked for. Read-only; compares like any mapping.

    Copies (`copy`, `pickle`) are dictionaries: what gives the bytes their meaning is shared, and stays where it is.

    Attributes:
        layout: what gives the bytes their meaning.
    """

    __slots__ = ("_at", "_data", "layout")

    def __init__(self, layout: ValuesLayout, data: bytes, at: Any) -> None:
        """Take values of a layout, of which the arguments are."""
        self.layout = layout
        self._data = data
        self._at = at

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in order; mostly one tuple for all that look alike."""
        return self.layout.names_of(self._data, self._at)

    def unpack(self) -> dict[str, object]:
        """All values, as a dictionary of its own."""
        return self.layout.unpack(self._data, self._at)

    def raw(self) -> bytes:
        """The bytes of these values: equal bytes of one `layout` are equal values."""
        return self.layout.raw(self._data, self._at)

    def detach(self) -> LazyValues:
        """The same with bytes of its own, to keep one object of a large message."""
        data, at = self.layout.detach(self._data, self._at)
        # What has bytes of its own stays itself: states that share it are compared by that (`compare_bytes`).
        return self if data is self._data else make_values(self.layout, data, at)

    def __getitem__(self, name: str) -> object:
        return self.layout.get(self._data, self._at, name)

    def __contains__(self, name: object) -> bool:
        return self.layout.has(self._data, self._at, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __eq__(self, other: object) -> bool:
        # Unpacked twice, NaN is not the same NaN.
        return self is other or super().__eq__(other)

    __hash__ = None  # type: ignore[assignment]  # like a dictionary

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (self.unpack(),)

    def __repr__(self) -> str:
        return repr(self.unpack())


#: Makes values, with the arguments of the class. No layout knows the values that it describes.
make_values = filler(LazyValues, ("layout", "_data", "_at"), acyclic=True) or LazyValues
