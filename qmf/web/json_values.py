"""QMF values as JSON keeps them, and back.

JSON's numbers are doubles in many programs, which keep whole numbers up to 2**53 only (RFC 7493, section 2.2). So:

======================  ======================================================================================
QMF                     JSON
======================  ======================================================================================
integers                a number from -(2**53 - 1) to 2**53 - 1; beyond, a string of digits. Both are accepted
absTime                 RFC 3339 in UTC with nanoseconds: ``2026-11-23T08:30:00.000000001Z``
deltaTime               nanoseconds, an integer; the schema says so (``unit``)
float, double           a number; ``"NaN"``, ``"Infinity"`` and ``"-Infinity"`` as strings
uuid                    a string
objId                   an object: ``name``, ``agent`` and ``href``
map, list               an object, an array; what they hold by its own kind; binary as base64
======================  ======================================================================================
"""

from __future__ import annotations

import base64
import contextlib
import datetime
import math
import re
from collections.abc import Mapping
from uuid import UUID

import orjson

from qmf.console.aio import ObjectId
from qmf.errors import ConstraintError
from qmf.schema import QmfType
from qmf.views.records import JsonForm
from qmf.views.times import parse_instant
from qmf.web.addresses import object_href

#: The largest whole number that every JSON parser keeps.
MAX_SAFE = 2**53 - 1

_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)\Z", re.ASCII)
_WHOLE = re.compile(r"[+-]?\d{1,40}\Z", re.ASCII)


def json_bytes(content: object) -> bytes:
    """A JSON document of values as Python has them; integers that readers would round become strings of digits."""
    try:
        return orjson.dumps(content, default=to_json, option=orjson.OPT_STRICT_INTEGER)
    except TypeError:  # a large integer, or text that is no text
        return orjson.dumps(to_json(content))


def to_json(value: object, kind: QmfType | None = None) -> object:
    """A value for JSON.

    Args:
        value: as the console reads it.
        kind: its schema type; None: as its Python type says.
    """
    if kind is not None and kind.base == "absTime" and isinstance(value, int):
        return time_text(value)
    return _FORM.plain(value)


def time_text(nanoseconds: int) -> str | None:
    """A time as RFC 3339 in UTC, with all nine digits; None for 0, which stands for no time.

    A time beyond the year 9999, which RFC 3339 cannot express, is written as the number, in digits.
    """
    found = _FORM.instant(nanoseconds)
    return None if found is None else str(found)


def reference(value: ObjectId) -> dict[str, object]:
    """An object id as JSON; ``href`` is where the object is found."""
    found: dict[str, object] = {"name": _valid_text(value.object_name), "agent": value.agent_name}
    if value.agent_name:
        found["href"] = object_href(value)
    return found


def from_json(value: object, kind: QmfType, where: str) -> object:
    """A value of a JSON document as the console takes it; it checks bounds itself.

    Args:
        value: of the document.
        kind: the schema type that it is for.
        where: what it is for, for the error.

    Raises:
        ConstraintError: it can't be a value of this type.
    """
    if value is None:
        return None
    match kind.base:
        case "absTime":
            return _time(value, where)
        case "float" | "double":
            return _float(value, where, kind.base)
        case "uuid":
            return _uuid(value, where)
        case "objId":
            return _object_id(value, where)
    if kind.is_integer:
        if isinstance(value, str) and _WHOLE.match(value):
            return int(value)
        if isinstance(value, float) and value.is_integer() and abs(value) <= MAX_SAFE:
            return int(value)
    return value


def _time(value: object, where: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str):
        if _WHOLE.match(value):
            return int(value)
        if _RFC3339.match(value):
            with contextlib.suppress(ValueError):
                return parse_instant(value.upper())
    raise ConstraintError(where, "absTime", value, "must be a time such as 2026-11-23T08:30:00Z")


def _float(value: object, where: str, name: str) -> object:
    if isinstance(value, str):
        if value in ("NaN", "Infinity", "-Infinity"):
            return float(value)
        raise ConstraintError(where, name, value, "must be a number")
    return value


def _uuid(value: object, where: str) -> UUID:
    try:
        return UUID(str(value))
    except ValueError:
        raise ConstraintError(where, "uuid", value, "must be a uuid") from None


def _object_id(value: object, where: str) -> ObjectId:
    if isinstance(value, Mapping):
        name, agent = value.get("name"), value.get("agent")
        if isinstance(name, str) and name and (agent is None or isinstance(agent, str)):
            return ObjectId(name, agent)
    raise ConstraintError(where, "objId", value, "must be an object with name and agent")


def _valid_text(text: str) -> str:
    """Text that UTF-8 can express: what was no text on the wire becomes the replacement character."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _safe_integer(value: int) -> int | str:
    return int(value) if -MAX_SAFE <= value <= MAX_SAFE else str(int(value))


def _special(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _other(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime.datetime) else str(value)


_FORM = JsonForm(
    text=_valid_text,
    integer=_safe_integer,
    special=_special,
    binary=lambda value: base64.b64encode(value).decode(),
    reference=reference,
    other=_other,
)
