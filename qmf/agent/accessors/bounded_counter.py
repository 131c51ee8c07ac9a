"""Counters with the bounds as constants in their code, which need not be fetched: programs count in inner loops.

They do the same as `Counter`, and keep all rules of accessors.
"""

from __future__ import annotations

import functools

from qmf._compile import compile_function
from qmf.agent.accessors.counter import Counter
from qmf.agent.layout.change_marks import STATISTICS_CELL, set_mark
from qmf.agent.layout.checks import range_condition
from qmf.agent.layout.class_layout import FieldLayout
from qmf.agent.layout.constraint_errors import range_error, to_whole_number

#: Counting by one, the common case, has a branch of its own with one bound to check. The bound is first compared in 30
#: bits, which CPython does in place.
_COUNT = """\
def {name}(self, n=one):
    if n is not one:
        if type(n) is not int:
            n = to_whole_number(n, self._field)
        new = self._value {sign} n
        if not ({fits}):
            raise range_error(self._field, new)
    else:
        new = self._value {sign} 1
        if {beyond}:
            raise range_error(self._field, new)
    self._value = new
    cells = self._cells
    if not cells[{mark}]:
        set_mark(cells, {mark})
"""

_SET = """\
def {name}(self, value):
    if type(value) is not int:
        value = to_whole_number(value, self._field)
    if not ({fits}):
        raise range_error(self._field, value)
    if value != self._value:
        self._value = value
        cells = self._cells
        if not cells[{mark}]:
            set_mark(cells, {mark})
"""

_SMALL = (1 << 30) - 1


def bounded_counter_class(field: FieldLayout) -> type[Counter]:
    """The class of counters with the bounds of a field."""
    return _counter(int(field.low), int(field.high))


@functools.cache
def _counter(low: int, high: int) -> type[Counter]:
    fits = range_condition("new", low, high)
    sources = {
        "inc": _COUNT.format(
            name="inc", sign="+", fits=fits, beyond=_beyond_condition(">", high), mark=STATISTICS_CELL
        ),
        "dec": _COUNT.format(name="dec", sign="-", fits=fits, beyond=_beyond_condition("<", low), mark=STATISTICS_CELL),
        "set": _SET.format(name="set", fits=range_condition("value", low, high), mark=STATISTICS_CELL),
    }
    names = {"to_whole_number": to_whole_number, "range_error": range_error, "set_mark": set_mark, "one": 1}
    members: dict[str, object] = {"__slots__": (), "__doc__": Counter.__doc__, "__module__": Counter.__module__}
    for name, source in sources.items():
        method = compile_function(name, source, names, f"Counter {low} {high}")
        method.__doc__ = getattr(Counter, name).__doc__
        method.__qualname__ = f"Counter.{name}"
        members[name] = method
    return type("Counter", (Counter,), members)


def _beyond_condition(sign: str, bound: int) -> str:
    """The condition, as source, that the new number is beyond a bound."""
    small = min(max(bound, -_SMALL), _SMALL)
    return f"new {sign} {bound}" if small == bound else f"new {sign} {small} and new {sign} {bound}"
