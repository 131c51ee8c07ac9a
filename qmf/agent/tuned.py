"""Counters for bounds that are known: the same as `Counter`, with the bounds as constants in the code.

A program counts in its innermost loops, and constants need not be fetched. All the rules of `qmf.agent.accessors` hold.
"""

from __future__ import annotations

import functools

from qmf.agent.accessors import Counter
from qmf.agent.complaints import out_of_range, whole
from qmf.agent.layout import STATISTICS_CELL, Field
from qmf.agent.setters import inside
from qmf.codec.generated import build

_METHOD = """\
def {name}(self, {argument}):
    if {strange}:
        {value} = whole({value}, self._field)
    new = {result}
    if not ({fits}):
        raise out_of_range(self._field, new)
    {store}
"""

_STORE = f"""self._value = new
    self._cells[{STATISTICS_CELL}] = True"""

_STORE_NEW = f"""if new != self._value:
        self._value = new
        self._cells[{STATISTICS_CELL}] = True"""

#: Whether an argument needs a closer look. Mostly it is the default, which costs less to compare than a type.
_STRANGE = "n is not one and type(n) is not int"

#: Argument, what it is called, whether it is strange, what the new value is, and how it is stored.
_METHODS = {
    "inc": ("n=one", "n", _STRANGE, "self._value + n", _STORE),
    "dec": ("n=one", "n", _STRANGE, "self._value - n", _STORE),
    "set": ("value", "value", "type(value) is not int", "value", _STORE_NEW),
}


def counter_for(field: Field) -> type[Counter]:
    """The class of counters with the bounds of a field."""
    return _counter(int(field.low), int(field.high))


@functools.cache
def _counter(low: int, high: int) -> type[Counter]:
    fits = inside("new", low, high)
    names = {"whole": whole, "out_of_range": out_of_range, "one": 1}
    members: dict[str, object] = {"__slots__": (), "__doc__": Counter.__doc__, "__module__": Counter.__module__}
    for name, (argument, value, strange, result, store) in _METHODS.items():
        parts = {"argument": argument, "value": value, "strange": strange, "result": result, "store": store}
        source = _METHOD.format(name=name, fits=fits, **parts)
        method = build(name, source, names, f"Counter {low} {high}")
        method.__doc__ = getattr(Counter, name).__doc__
        method.__qualname__ = f"Counter.{name}"
        members[name] = method
    return type("Counter", (Counter,), members)
