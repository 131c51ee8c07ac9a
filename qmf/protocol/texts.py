"""Search for a text in objects (docs/protocol.md): ours, between our own agents and consoles.

A text is searched for in the name of an object and in its values, also within lists and maps, whose keys count as
well; a number, a boolean or a reference counts as its text. Case does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from qmf.protocol.values import ObjectData
from qmf.schema import QmfType

_WHOLE_NUMBER = frozenset("0123456789-")
_NUMBER = _WHOLE_NUMBER | frozenset("+.einfa")
_BOOLEANS = ("true", "false")


def _lower(text: str) -> str:
    return text.lower()


def texts_in(value: object) -> Iterator[str]:
    """The texts in a value; a number as its decimal text."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield str(key)
            yield from texts_in(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from texts_in(inner)
    elif value is not None:
        yield str(value)


@attrs.frozen
class TextSearch:
    """A text that is searched for.

    Attributes:
        text: what was asked for, in lower case.
    """

    text: str = attrs.field(converter=_lower)

    def is_in_value(self, value: object) -> bool:
        """True if a value contains it."""
        return any(self.text in found.lower() for found in texts_in(value))

    def is_in(self, data: ObjectData) -> bool:
        """True if the name or a value of an object contains it."""
        name = "" if data.object_id is None else data.object_id.object_name
        return self.text in name.lower() or any(map(self.is_in_value, data.values.values()))

    def can_be_in(self, kind: QmfType) -> bool:
        """False if no value of a type contains it."""
        if kind.base == "bool":
            return any(self.text in word for word in _BOOLEANS)
        if kind.is_integer:
            return _WHOLE_NUMBER.issuperset(self.text)
        if kind.base in ("float", "double"):
            return _NUMBER.issuperset(self.text)
        return True

    @property
    def is_plain(self) -> bool:
        """True if it stands as it is in the representation of every value that contains it, in any case."""
        return self.text.isascii() and self.text.isprintable() and not any(sign in self.text for sign in "'\"\\")
