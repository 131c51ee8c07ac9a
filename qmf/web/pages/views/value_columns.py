"""A column of a table of objects: where its values come from, and what is known of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from qmf.console.aio import RemoteObject
from qmf.schema import QmfType
from qmf.views.units import heading_unit

#: What ends the name of a column with the growth of a counter per second.
RATE = ".rate"


@attrs.frozen
class ValueColumn:
    """A column of a table of objects.

    Attributes:
        name: wire name of the value, ``name.rate``, or one of ``index``, ``agent``, ``updated`` and ``created``.
        title: its heading.
        read: reads the value of an object; of a rate it reads the counter.
        type: its type; None for what is no value of the class.
        unit: as in the schema, or None.
        desc: its description, or empty.
        statistic: it belongs to a statistic.
        counter: it only grows.
        rate: it is the growth per second of the counter of this name; empty if it is not.
        marks: the CSS classes of cells with these texts.
    """

    name: str
    title: str
    read: Callable[[RemoteObject], object]
    type: QmfType | None = None
    unit: str | None = None
    desc: str = ""
    statistic: bool = False
    counter: bool = False
    rate: str = ""
    marks: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def is_number(self) -> bool:
        """True if its values are numbers."""
        return bool(self.rate) or (
            self.type is not None and (self.type.is_integer or self.type.name in ("float", "double"))
        )

    @property
    def is_duration(self) -> bool:
        """True if its values are nanoseconds."""
        return self.type is not None and (self.type.base == "deltaTime" or self.unit == "nanosecond")

    @property
    def is_reference(self) -> bool:
        """True if its values are references to objects."""
        return self.type is not None and self.type.name == "objId"

    @property
    def unit_text(self) -> str:
        """The unit for its heading; empty if the cells have it."""
        if self.rate:
            return ""
        if self.type is not None and self.type.base in ("absTime", "deltaTime"):
            return ""
        return heading_unit(self.unit)
