"""Forms for method calls and for setting properties, made from the schema; what was entered becomes checked values."""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Mapping, Sequence

import attrs

from qmf.console.aio import ObjectId
from qmf.errors import CallerError
from qmf.schema import Access, Argument, ClassSchema, Method, Property, QmfType
from qmf.views.arguments import checked_value
from qmf.views.text import clean, one_line
from qmf.views.units import plural_unit
from qmf.web.pages.views.page_urls import object_of

_EMPTY_MAP = "{}"
#: From this many bytes on a text may have several lines.
_LONG_TEXT = 256


class FormFieldKind(enum.Enum):
    """What a field of a form looks like."""

    TEXT = "text"
    LONG_TEXT = "long text"
    NUMBER = "number"
    BOOL = "bool"
    TIME = "time"
    DURATION = "duration"
    REFERENCE = "reference"
    JSON = "json"


@attrs.frozen
class FormField:
    """A field of a form.

    Attributes:
        item: the argument or property that it is for.
        kind: what it looks like.
        hint: type, bounds and unit in words.
        initial: what it contains at first, as text.
        optional: it may stay empty: there is a default, or the property may be absent.
    """

    item: Argument | Property
    kind: FormFieldKind
    hint: str
    initial: str
    optional: bool

    @property
    def name(self) -> str:
        """Name of the argument or property."""
        return self.item.name

    @property
    def desc(self) -> str:
        """Its description, or empty."""
        return one_line(self.item.desc or "")

    @property
    def is_empty_value(self) -> bool:
        """True if an empty field stands for an empty value: schemas don't tell which maps a method needs."""
        return self.item.type.name == "map" and not self.optional

    def value(self, text: str) -> object:
        """The value that was entered, checked.

        Raises:
            ConstraintError: of its type, but outside of the bounds.
            CallerError: not of its type.
        """
        if self.kind is FormFieldKind.REFERENCE:
            return _reference(text.strip())
        return checked_value(self.item, text or (_EMPTY_MAP if self.is_empty_value else ""), self.item.name)

    def problem(self, text: str) -> str:
        """What is wrong with what was entered, in a few words; empty if nothing is."""
        if not text and not self.is_empty_value and self.kind not in (FormFieldKind.TEXT, FormFieldKind.LONG_TEXT):
            return "" if self.optional else "must be given"
        try:
            self.value(text)
        except CallerError as error:
            return str(getattr(error, "reason", "") or error)
        return ""


def _reference(text: str) -> ObjectId:
    """The object whose page's address, or agent and name, was entered."""
    path = re.search(r"/object/([^/?#\s]+)/([^/?#\s]+)", text)
    if path is not None:
        return object_of(path[1], path[2])
    agent, bar, name = text.partition("|")
    if bar and agent and name:
        return ObjectId(name.strip(), agent.strip())
    raise CallerError("must be the address of the object's page, or agent|name")


def form_of(method: Method) -> list[FormField]:
    """The fields for the inputs of a method."""
    return [
        FormField(
            item,
            _kind(item.type, item.max_len),
            _hint(item),
            _EMPTY_MAP if item.type.name == "map" and item.default is None else _initial(item.default),
            item.default is not None,
        )
        for item in method.inputs
    ]


def property_form(schema: ClassSchema, values: Mapping[str, object]) -> list[FormField]:
    """The fields for the properties that a console may set, with their present values."""
    return [
        FormField(item, _kind(item.type, item.max_len), _hint(item), _initial(values.get(item.name)), item.optional)
        for item in schema.properties
        if item.access is Access.RW
    ]


def _kind(kind: QmfType, max_len: int | None) -> FormFieldKind:
    if kind.name == "absTime":
        return FormFieldKind.TIME
    if kind.name == "deltaTime":
        return FormFieldKind.DURATION
    if kind.is_string:
        longest = kind.max_bytes if max_len is None else max_len
        return FormFieldKind.LONG_TEXT if (longest or 0) >= _LONG_TEXT else FormFieldKind.TEXT
    if kind.is_integer or kind.name in ("float", "double"):
        return FormFieldKind.NUMBER
    return {"bool": FormFieldKind.BOOL, "objId": FormFieldKind.REFERENCE, "uuid": FormFieldKind.TEXT}.get(
        kind.name, FormFieldKind.JSON
    )


def _hint(item: Argument | Property) -> str:
    parts = [item.type.name]
    low, high = item.minimum, item.maximum
    if low is None and high is None and item.type.is_integer and item.type.name not in ("absTime", "deltaTime"):
        low, high = item.type.minimum, item.type.maximum
    if low is not None and high is not None:
        parts.append(f"{low:,} to {high:,}")
    elif low is not None:
        parts.append(f"at least {low:,}")
    elif high is not None:
        parts.append(f"at most {high:,}")
    if item.max_len is not None:
        parts.append(f"at most {item.max_len:,} bytes")
    if item.type.name == "map":
        parts.append("a JSON object")
    if item.type.name == "list":
        parts.append("a JSON array")
    if item.type.name == "deltaTime":
        parts.append("such as 5s or 2m")
    elif item.unit:
        parts.append(f"in {plural_unit(item.unit)}")
    if item.references is not None:
        parts.append(f"refers to {item.references}")
    return clean(", ".join(parts))


def _initial(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, ObjectId):
        return f"{value.agent_name}|{value.object_name}" if value.object_name else ""
    if isinstance(value, Mapping | list | tuple):
        return json.dumps(value, default=str, ensure_ascii=False)
    return str(value)


def entered_values(fields: Sequence[FormField], texts: Mapping[str, str]) -> dict[str, object]:
    """The values of a form that was filled in; fields that may stay empty and are empty are left out.

    Raises:
        CallerError: a value is wrong; names the field.
    """
    values: dict[str, object] = {}
    for field in fields:
        text = texts.get(field.name, "")
        if not text and field.optional:
            continue
        problem = field.problem(text)
        if problem:
            raise CallerError(f"{field.name}: {problem}")
        values[field.name] = field.value(text)
    return values


def changed_values(fields: Sequence[FormField], texts: Mapping[str, str]) -> dict[str, object]:
    """The properties of a form whose text is another than at first; an optional one that was emptied is None.

    Raises:
        CallerError: a value is wrong; names the field.
    """
    changed = [field for field in fields if texts.get(field.name, field.initial) != field.initial]
    values: dict[str, object] = dict(entered_values(changed, texts))
    for field in changed:
        if not texts[field.name] and field.optional:
            values[field.name] = None
    return values


def arguments_text(values: Mapping[str, object]) -> list[tuple[str, str]]:
    """Arguments as names and texts, for a confirmation."""
    return [(clean(name), clean(_initial(value)) or "(empty)") for name, value in values.items()]
