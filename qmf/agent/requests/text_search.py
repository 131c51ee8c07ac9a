"""Which objects contain a text: for queries that search (docs/protocol.md).

Only the values are read that can contain it, and looked at one by one only if it stands in the representation of all
together: for one of a hundred thousand objects, that is a sixth of the time. Belongs to the event loop's thread.
"""

from __future__ import annotations

from collections.abc import Callable

from qmf.agent.layout import object_state
from qmf.agent.layout.class_layout import BOTH, ClassLayout
from qmf.agent.model.managed_object import ManagedObject, layout_of
from qmf.agent.model.value_readers import make_reader_of
from qmf.protocol import ObjectData, TextSearch

#: Whether an object contains the text.
_Test = Callable[[ManagedObject], bool]


class ObjectSearch:
    """Searches for one text in objects of any classes."""

    def __init__(self, text: str) -> None:
        self._search = TextSearch(text)
        self._tests: dict[type[ManagedObject], _Test] = {}

    def is_in(self, obj: ManagedObject) -> bool:
        """True if the name or a value of a stored object contains the text."""
        test = self._tests.get(type(obj))
        if test is None:
            test = self._tests[type(obj)] = self._make_test(layout_of(type(obj)))
        return test(obj)

    def is_in_provided(self, data: ObjectData) -> bool:
        """The same of an object of a provider."""
        return self._search.is_in(data)

    def _make_test(self, layout: ClassLayout) -> _Test:
        search, text = self._search, self._search.text
        fields = layout.fields(BOTH)
        wanted = [name for field in fields for name, kind in field.wire if search.can_be_in(kind)]
        _, read = make_reader_of(layout, wanted)
        plain = search.is_plain

        def test(obj: ManagedObject) -> bool:
            if text in object_state.object_name(obj).lower():
                return True
            raw = read(obj)
            if plain and text not in repr(raw).lower():
                return False
            return any(map(search.is_in_value, raw))

        return test
