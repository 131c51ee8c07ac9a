"""What can be compared: the fields that a caller gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from qmf.schema import QmfType


def value_text(value: object) -> str:
    """A value as text, as patterns and comparisons see it; of a reference the name of its object."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


@attrs.frozen(kw_only=True)
class Field:
    """A value of objects of any kind.

    Attributes:
        name: of the field, for messages.
        read: its value of an object, or None.
        type: its type; None if values are to be compared as what they are, numbers or texts.
        unit: as in the schema, or None.
        parse: values that only the caller knows, e.g. names of severities; None for a text that is no such value.
        reverse: lesser values count as more.
        wire_name: name by which agents can compare it, or empty.
    """

    name: str
    read: Callable[[Any], object]
    type: QmfType | None = None
    unit: str | None = None
    parse: Callable[[str], object] | None = None
    reverse: bool = False
    wire_name: str = ""

    @property
    def is_time(self) -> bool:
        """True if its values are nanoseconds since 1970."""
        return self.type is not None and self.type.base == "absTime"

    @property
    def is_duration(self) -> bool:
        """True if its values are nanoseconds."""
        return self.type is not None and (self.type.base == "deltaTime" or self.unit == "nanosecond")

    @property
    def is_number(self) -> bool:
        """True if its values are numbers, durations among them, but no times."""
        return (
            self.type is not None
            and not self.is_time
            and (self.type.is_integer or self.type.name in ("float", "double"))
        )

    @property
    def is_bool(self) -> bool:
        """True if its values are booleans."""
        return self.type is not None and self.type.name == "bool"

    @property
    def is_reference(self) -> bool:
        """True if its values are references to objects."""
        return self.type is not None and self.type.name == "objId"
