"""A column of a table of objects: where its values come from, and what is known of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from qmf.views.fields import ObjectField
from qmf.views.objects import ObjectView
from qmf.views.text import clean
from qmf.views.units import heading_unit

#: What ends the name of a column with the growth of a counter per second.
RATE = ".rate"


@attrs.frozen
class PageColumn:
    """A column of a table of objects.

    Attributes:
        field: the value; of a rate its counter.
        read: reads the value of an object.
        title: its heading.
        rate: it is the growth per second of the counter of this name; empty if it is not.
        marks: the CSS classes of cells with these texts.
        desc: its description, or empty.
        name: wire name of the value, ``name.rate``, or one of `COMMON_FIELDS`.
    """

    field: ObjectField
    read: Callable[[ObjectView], object]
    title: str = attrs.field()
    rate: str = ""
    marks: Mapping[str, str] = attrs.field(factory=dict)
    desc: str = attrs.field()
    name: str = attrs.field()

    @title.default
    def _own_title(self) -> str:
        return clean(self.field.name)

    @desc.default
    def _own_desc(self) -> str:
        return clean(self.field.desc)

    @name.default
    def _own_name(self) -> str:
        return self.field.name

    @property
    def is_number(self) -> bool:
        """True if its values are numbers."""
        return bool(self.rate) or self.field.is_number or self.field.is_time

    @property
    def unit_text(self) -> str:
        """The unit for its heading; empty if the cells have it."""
        return "" if self.rate or self.field.is_time else heading_unit(self.field.unit)


def rate_column(field: ObjectField, title: str, desc: str, name: str = "") -> PageColumn:
    """The column of the growth per second of a counter; `name` is what its name begins with, that of the counter."""
    return PageColumn(field, lambda _: None, title, field.name, desc=desc, name=(name or field.name) + RATE)
