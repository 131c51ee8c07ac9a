"""Which statistics of a class are worth a column: of a known class, what operators look for; else what tells its
objects apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from qmf.schema import ClassSchema, Statistic
from qmf.views.broker_fields import important_values
from qmf.views.fields import main_entry

#: Values of a class that are shown by default, if there is room.
SHOWN = 8
#: Objects that are looked at to find out which values differ.
_EXAMINED = 500
#: The rank of statistics that are zero; these are shown only if there are fewer others than so many.
_ZERO = 2
_ENOUGH = 4


def important_statistics(
    schemas: Sequence[ClassSchema], objects: Iterable[Mapping[str, object]], most: int = SHOWN
) -> list[str]:
    """The statistics of a class that matter: those of a known class that operators look for, then those that differ
    between its objects, then those that are not zero.

    If these are few, others follow. Each group but the first is in the order of the schema.

    Args:
        objects: values by wire name of some of its objects; without any, the order of the schema decides.
        most: how many at most.
    """
    statistics = {item.name: item for schema in reversed(schemas) for item in schema.statistics}
    order = list(dict.fromkeys(item.name for schema in schemas for item in schema.statistics))
    wanted = [name for schema in schemas for name in important_values(schema)]
    known = [name for name in dict.fromkeys(wanted) if name in statistics]
    examined = list(islice(objects, _EXAMINED))
    ranks = {name: _rank(statistics[name], examined) for name in order if name not in known}
    chosen = [*known, *sorted(ranks, key=lambda name: ranks[name])][:most]
    return [name for at, name in enumerate(chosen) if ranks.get(name, 0) < _ZERO or at < _ENOUGH]


def _rank(item: Statistic, objects: Sequence[Mapping[str, object]]) -> int:
    name = main_entry(item)
    values: set[int | float] = set()
    for one in objects:
        value = one.get(name)
        if isinstance(value, int | float):
            values.add(value)
            if len(values) > 1:
                return 0
    return 1 if any(values) or not objects else _ZERO
