"""Columns of every type with fitting values, for the tests of encoders that know their columns."""

from __future__ import annotations

from uuid import UUID

from hypothesis import strategies as st

from qmf.codec import wrap_value
from qmf.protocol.objects.columns import FIXED_CODES
from qmf.schema import TYPES

MAPS = st.dictionaries(
    st.text(max_size=5), st.integers(-5, 5) | st.text(max_size=5) | st.lists(st.booleans()), max_size=3
)
LISTS = st.lists(st.integers(-5, 5) | MAPS, max_size=3)
TEXTS = st.text(max_size=20) | st.text("ab", min_size=250, max_size=300)


def values(name: str) -> st.SearchStrategy[object]:
    """Plain values of a schema type."""
    kind = TYPES[name]
    if kind.minimum is not None:
        return st.integers(kind.minimum, kind.maximum)
    return {
        "bool": st.booleans(),
        "float": st.floats(width=32, allow_nan=False),
        "double": st.floats(allow_nan=False),
        "uuid": st.binary(min_size=16, max_size=16).map(lambda raw: UUID(bytes=raw)),
        "sstr": TEXTS,
        "lstr": TEXTS,
        "map": MAPS,
        "list": LISTS,
    }[name]


#: Names of direct types with one or a few columns' worth of values each.
NAMES = [*FIXED_CODES, "sstr", "lstr", "map", "list"]


def on_the_wire(name: str, value: object) -> object:
    """A plain value as the general encoder takes it."""
    return wrap_value(TYPES[name], value)
