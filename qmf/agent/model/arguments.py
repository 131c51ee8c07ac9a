"""Base classes of generated events and of results of methods, and the values of their arguments."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import ClassVar, TypeAlias, TypeVar

from qmf.agent.layout.checks import Check, make_check
from qmf.agent.layout.references import Referable, resolve
from qmf.codec import wrap_value
from qmf.protocol.values import ObjectId
from qmf.schema import Argument, EventSchema
from qmf.schema.documentation import document

T = TypeVar("T")

#: The return type of methods: the result, or an awaitable of it.
MaybeAwaitable: TypeAlias = T | Awaitable[T]


class Result:
    """Outputs of a method: base of generated result classes, which have one field per output argument."""

    __slots__ = ()


class Event:
    """An event: base of generated event classes, which have one field per argument."""

    __slots__ = ()

    _qmf_schema_: ClassVar[EventSchema]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        document(cls)

    def _qmf_values(self) -> dict[str, object]:
        """Arguments for the wire, by name, typed as in the schema. References that are None are absent.

        Raises:
            ConstraintError: a value does not fit its argument.
        """
        return typed_arguments(self, self._qmf_schema_.arguments, f"event {self._qmf_schema_.name}")


def typed_arguments(source: Event, arguments: tuple[Argument, ...], where: str) -> dict[str, object]:
    """The arguments of an event, checked, for the wire.

    Args:
        source: has an attribute for each argument.
        arguments: the arguments to read, in order.
        where: what they belong to, for errors.

    Raises:
        ConstraintError: a value does not fit.
    """
    result = {}
    for item in arguments:
        checked = argument_check(item, where)(getattr(source, python_name(type(source), item.name)))
        value = typed_argument(item, checked)
        if value is not None:
            result[item.name] = value
    return result


def typed_argument(item: Argument, value: object) -> object:
    """A value that passed its check, typed for the wire; None for a reference that is not set."""
    if isinstance(value, Referable):
        value = resolve(value)
    return value if value is None or isinstance(value, ObjectId) else wrap_value(item.type, value)


def argument_check(item: Argument, where: str) -> Check:
    """The check of one argument of `where`."""
    return make_check(item, f"argument {item.name!r} of {where}")


def python_name(cls: type, name: str) -> str:
    """The Python name for a schema name: with a trailing underscore where generated code had to avoid a clash."""
    return f"{name}_" if hasattr(cls, f"{name}_") else name
