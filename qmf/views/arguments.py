"""Arguments of methods and values of properties, as people write them."""

from __future__ import annotations

from qmf.errors import CallerError
from qmf.schema import Argument, Property, QmfType, check_value, parse_value
from qmf.views.times import parse_duration, parse_instant


class ArgumentError(CallerError):
    """An argument of a method is missing, given twice, one too many, or not a value of its type.

    Attributes:
        reason: why it is no value of its type, in a few words; else the whole message.
    """

    def __init__(self, message: str, reason: str = "") -> None:
        self.reason = reason or message
        super().__init__(message)


def checked_value(item: Argument | Property, text: str, where: str) -> object:
    """The value that a text stands for, of the type and within the bounds of an argument or property.

    It is written as `qmf.schema.parse_value` reads it, except that a duration may have units, as in ``5s``, and a time
    may be a date, as in ``2026-05-01T12:00``, in this machine's time zone unless it names one.

    Args:
        item: the argument or property; not a reference.
        text: the value as text.
        where: what the value is for; begins the message of an error.

    Raises:
        ArgumentError: not a value of the type.
        ConstraintError: not within the bounds.
    """
    try:
        value = _parse(item.type, text if item.type.is_string else text.strip())
    except ValueError as error:
        raise ArgumentError(f"{where} ({item.type.name}): {error}: {text!r}", str(error)) from None
    return check_value(item.type, value, where=where, minimum=item.minimum, maximum=item.maximum, max_len=item.max_len)


def _parse(kind: QmfType, text: str) -> object:
    if kind.name == "deltaTime" and text[-1:].isalpha() and not text.lower().startswith("0x"):
        return parse_duration(text)
    try:
        return parse_value(kind, text)
    except ValueError:
        if kind.name != "absTime":
            raise
    try:
        return parse_instant(text)
    except ValueError:
        raise ValueError("must be a time such as 2026-05-01T12:00") from None
