"""The objects of a block of rows, each made when it is asked for: whoever gets thousands looks at few of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn, overload

from qmf._compile import fast_constructor
from qmf.protocol.objects.rows import RowLayout, RowValues
from qmf.protocol.values import ObjectBlock, ObjectData, ObjectId

#: In the order of their fields.
_make_data, _make_id = fast_constructor(ObjectData), fast_constructor(ObjectId)


class Nothing(Mapping[str, str]):
    """An empty map that all may share. Its copies are dictionaries, as general functions give them."""

    __slots__ = ()

    def __getitem__(self, name: str) -> NoReturn:
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, ()

    def __repr__(self) -> str:
        return "{}"


NOTHING = Nothing()


class RowObjects(Sequence[ObjectData]):
    """The objects of a block. Read-only; compares like any sequence of objects; copies are lists.

    Attributes:
        class_key: of all of them.
        offsets: where their rows start.
    """

    __slots__ = ("_agent", "_epoch", "_layout", "_rows", "class_key", "offsets")

    def __init__(self, block: ObjectBlock, layout: RowLayout) -> None:
        """Check a block, which has that layout.

        Raises:
            DecodeError: the rows are broken.
        """
        self.class_key = block.class_key
        self.offsets = layout.check(block.rows)
        self._agent = block.agent_name
        self._epoch = block.agent_epoch
        self._layout = layout
        self._rows = block.rows

    def at(self, offset: int) -> ObjectData:
        """The object whose row starts at one of `offsets`; its values stay a row until they are read."""
        layout, rows = self._layout, self._rows
        _, name, update, create, delete = layout.head(rows, offset)
        object_id = _make_id(name, self._agent, self._epoch)
        values = RowValues(layout, rows, offset)
        return _make_data(values, object_id, self.class_key, update, create, delete, NOTHING, False)

    def __len__(self) -> int:
        return len(self.offsets)

    def __iter__(self) -> Iterator[ObjectData]:
        return map(self.at, self.offsets)

    @overload
    def __getitem__(self, index: int) -> ObjectData: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[ObjectData]: ...

    def __getitem__(self, index: int | slice) -> ObjectData | Sequence[ObjectData]:
        if isinstance(index, slice):
            return [self.at(offset) for offset in self.offsets[index]]
        return self.at(self.offsets[index])

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Sequence) and list(self) == list(other))

    __hash__ = None  # type: ignore[assignment]  # like a list

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)

    def __repr__(self) -> str:
        return repr(list(self))
