"""The objects of a block of rows, each made when it is asked for: whoever gets thousands looks at few of them."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn, TypeVar, overload

from qmf._compile import fast_constructor
from qmf.protocol.objects.lazy_values import make_values
from qmf.protocol.objects.rows import RowDecoder
from qmf.protocol.values import EventData, ObjectBlock, ObjectData, ObjectId
from qmf.schema import ClassKey

D = TypeVar("D", ObjectData, EventData)

#: In the order of their fields. What was received holds values only, and these know nothing of it.
make_object, make_id = fast_constructor(ObjectData, acyclic=True), fast_constructor(ObjectId, acyclic=True)


class EmptyMapping(Mapping[str, str]):
    """An empty map that all objects may share. Its copies are dictionaries, as general functions give them."""

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


EMPTY = EmptyMapping()


class RowObjects(Sequence[ObjectData]):
    """The objects of a block. Read-only; compares like any sequence of objects; copies are lists.

    Attributes:
        class_key: of all of them.
    """

    __slots__ = ("_agent", "_decoder", "_epoch", "_offsets", "_rows", "class_key")

    def __init__(self, block: ObjectBlock, decoder: RowDecoder) -> None:
        """Check a block, whose rows the decoder reads.

        Raises:
            DecodeError: the rows are broken.
        """
        self.class_key = block.class_key
        self._offsets = decoder.check(block.rows)
        self._agent = block.agent_name
        self._epoch = block.agent_epoch
        self._decoder = decoder
        self._rows = block.rows

    def _at(self, offset: int) -> ObjectData:
        """The object whose row starts at an offset; its values stay a row until they are read."""
        decoder, rows = self._decoder, self._rows
        name, update, create, delete = decoder.head(rows, offset)
        object_id = make_id(name, self._agent, self._epoch)
        values = make_values(decoder, rows, offset)
        return make_object(values, object_id, self.class_key, update, create, delete, EMPTY, False)

    def __len__(self) -> int:
        return len(self._offsets)

    def __iter__(self) -> Iterator[ObjectData]:
        return map(self._at, self._offsets)

    @overload
    def __getitem__(self, index: int) -> ObjectData: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[ObjectData]: ...

    def __getitem__(self, index: int | slice) -> ObjectData | Sequence[ObjectData]:
        if isinstance(index, slice):
            return [self._at(offset) for offset in self._offsets[index]]
        return self._at(self._offsets[index])

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Sequence) and list(self) == list(other))

    __hash__ = None  # type: ignore[assignment]  # like a list

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)

    def __repr__(self) -> str:
        return repr(list(self))


_class_key = operator.attrgetter("class_key")


def class_runs(items: Sequence[D]) -> list[tuple[ClassKey | None, Sequence[D]]]:
    """Objects or events, in order, by runs of one class; mostly all of a message are one run."""
    if isinstance(items, RowObjects):
        return [(items.class_key, items)] if items else []
    keys = list(map(_class_key, items))
    # In one step where one key object is that of all.
    if keys and keys.count(keys[0]) == len(keys):
        return [(keys[0], items)]
    return [(key, list(run)) for key, run in itertools.groupby(items, key=_class_key)]
