"""The fields of objects (`qmf.views.fields`) as users name them, and what a name really is where something else was
expected: ``used is a statistic of memory, not a method``.
"""

from __future__ import annotations

from collections.abc import Sequence

from qmf.errors import CallerError, NotFoundError
from qmf.schema import ClassSchema
from qmf.views import fields
from qmf.views.fields import ObjectField, fields_of
from qmf.views.text import clean


def find_field(schemas: Sequence[ClassSchema], name: str) -> ObjectField:
    """The field called `name`, see `qmf.views.fields.find_field`.

    Raises:
        NotFoundError: no version has it; carries similar names.
        WrongWordError: it is a method.
    """
    match = fields.find_field(schemas, name)
    if match is not None:
        return match
    check_word(schemas, name, "a value", "call ID {name} calls it")
    owner = clean(schemas[0].name) if schemas else "object"
    raise NotFoundError(f"value of {owner}", clean(name), fields_of(*schemas))


class WrongWordError(CallerError):
    """A name exists, but as something else than what was expected."""


def kind_of_name(schema: ClassSchema, name: str) -> tuple[str, str] | None:
    """What a class has under a name, in any case of letters: the name as the schema writes it, and its kind.

    The kinds are ``method``, ``property`` and ``statistic``; each value of a hilo or mma statistic is one, too.
    """
    wanted = name.lower()
    for kind, names in (
        ("method", [item.name for item in schema.methods]),
        ("property", [item.name for item in schema.properties]),
        ("statistic", [item.name for item in schema.statistics]),
        ("statistic", [entry.name for item in schema.statistics for entry in item.entries]),
    ):
        found = next((item for item in names if item.lower() == wanted), None)
        if found is not None:
            return found, kind
    return None


def check_word(schemas: Sequence[ClassSchema], name: str, expected: str, advice: str = "") -> None:
    """Raise an error if a class has the name as something else.

    Args:
        name: as typed.
        expected: what it should be, with its article: ``a method``.
        advice: what to write instead; ``{name}`` in it is the name.

    Raises:
        WrongWordError: it is something else.
    """
    for schema in schemas:
        found = kind_of_name(schema, name)
        if found is not None:
            real, kind = map(clean, found)
            hint = f"; {advice.format(name=real, kind=kind)}" if advice else ""
            raise WrongWordError(f"{real} is a {kind} of {clean(schema.name)}, not {expected}{hint}")
