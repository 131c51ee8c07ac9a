"""The compiled functions for events that look like earlier ones (`event_forms.c`), where they are installed.

They compare an event with its form in one call, and make it with bytes of its own: its values are read from these when
somebody asks for them. Without them, functions compiled from source do the same, but read all values at once.
"""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar
from uuid import UUID

from qmf._compile import fast_constructor
from qmf.codec.type_codes import CONSTANTS, UUID16
from qmf.protocol.objects.columns import FIXED_FORMATS, LENGTHS, NESTED, TEXTS
from qmf.protocol.objects.general import nearest_severity
from qmf.protocol.objects.lazy_values import make_values
from qmf.protocol.objects.nested_values import NestedValues
from qmf.protocol.objects.shape_functions import Place
from qmf.protocol.objects.shapes import Shape
from qmf.protocol.values import EventData
from qmf.schema.model import ClassKey

D = TypeVar("D")

#: Set in the environment to do without.
NO_NATIVE = "QMF_NO_NATIVE"

#: Of the module that fits, and the most values of a form; see `VERSION` and `MOST_VALUES` there.
_VERSION, _MOST_VALUES = 2, 400

#: Kinds of steps; see there.
BYTES, ENTER, LEAVE, CONSTANT, NUMBER, RAW, SIZED, NESTED_MAP = range(8)

_WIDTHS = {"b": 1, "B": 1, "?": 1, "h": 2, "H": 2, "i": 4, "I": 4, "f": 4, "q": 8, "Q": 8, "d": 8}


class FormSteps:
    """What a form consists of, for the compiled functions.

    Attributes:
        steps: the steps, as `event_forms.c` takes them.
        count: how many of them are values.
    """

    def __init__(self, nested: Mapping[int, NestedValues]) -> None:
        self.steps: list[tuple[Any, ...]] = []
        self.count = 0
        self._nested = nested
        self._known = b""

    def constant(self, raw: bytes) -> None:
        """Bytes that are the same in all maps."""
        self._known += raw

    def key(self, name: str, code: int) -> None:
        """A key, and the type code of its value."""
        raw = name.encode()
        self.constant(bytes((len(raw), *raw, code)))

    def value(self, code: int) -> Place:
        """A value, which comes behind its key. Of its place only the first number counts: which value it is."""
        if code in CONSTANTS:
            self._add(CONSTANT, CONSTANTS[code])
        elif code == UUID16:
            self._add(RAW, 16, _uuid)
        elif code in NESTED:
            nested = self._nested[code]
            self._add(NESTED_MAP, LENGTHS[code], nested.known, nested.check, nested.read)
        elif code in LENGTHS:
            self._add(SIZED, LENGTHS[code], code in TEXTS)
        else:
            self._add(NUMBER, FIXED_FORMATS[code], _WIDTHS[FIXED_FORMATS[code]])
        self.count += 1
        return self.count - 1, 0, code

    def enter(self) -> None:
        """The size field of a map whose keys and values follow."""
        self._add(ENTER)

    def leave(self) -> None:
        """The end of a map that was entered."""
        self._add(LEAVE)

    def end(self) -> tuple[tuple[Any, ...], ...]:
        """All steps."""
        self._flush()
        return tuple(self.steps)

    def _add(self, *step: Any) -> None:
        self._flush()
        self.steps.append(step)

    def _flush(self) -> None:
        if self._known:
            self.steps.append((BYTES, self._known))
            self._known = b""


def event_reader(
    nested: Mapping[int, NestedValues],
    fields: Sequence[tuple[str, int]],
    schema_id: bytes,
    class_key: ClassKey | None,
    shape: Shape,
) -> Callable[[bytes, int, int], EventData | None] | None:
    """The compiled function that reads the events of a form; the attributes of `Form` say which.

    Args:
        nested: reads maps and lists among the values, by type code.
        fields, schema_id, class_key, shape: of the form.

    Returns:
        the function, a `Read`; None where there is none for this form: of events that name an object, and of maps
        with more values than any event has.
    """
    module = compiled_module()
    names = [name for name, _ in fields]
    if module is None or "_object_id" in names or len(shape.names) + 2 > _MOST_VALUES:
        return None
    steps = FormSteps(nested)
    numbers: dict[str, int] = {}
    places: dict[str, Place] = {}
    steps.constant(len(fields).to_bytes(4, "big"))
    for name, code in fields:
        steps.key(name, code)
        if name == "_values":
            steps.enter()
            places = shape.add_to(steps)
            steps.leave()
        elif name == "_schema_id":
            steps.constant(schema_id)
        else:
            numbers[name] = steps.value(code)[0]
    form = module.form(
        steps.end(),
        shape.names,
        {name: place[0] for name, place in places.items()},
        numbers.get("_timestamp", -1),
        numbers.get("_severity", -1),
        class_key,
        fast_constructor(EventData, acyclic=True),
        make_values,
        nearest_severity,
        nearest_severity(None),
    )
    read: Callable[[bytes, int, int], EventData | None] = form.read
    return read


def run_reader(read: Callable[[bytes, int, int], object]) -> Callable[[bytes, int, int], tuple[list[Any], int]] | None:
    """The function that reads several events of a form, for the one that reads one.

    Args:
        read: reads an event, or object; of whatever kind.

    Returns:
        for a compiled function of `event_reader`, one that takes bytes, where an item of a list starts there, and how
        many items there are. It gives the events before the first item that has another form, and the offset behind
        them. For other functions None.
    """
    return getattr(getattr(read, "__self__", None), "read_run", None)


def _uuid(raw: bytes) -> UUID:
    return UUID(bytes=raw)


@functools.cache
def compiled_module() -> Any:
    """The compiled module; None where it is not installed, or not wanted."""
    if os.environ.get(NO_NATIVE):
        return None
    try:
        module = importlib.import_module("qmf.protocol.objects._event_forms")
    except ImportError:
        return None
    return module if module.VERSION == _VERSION else None
