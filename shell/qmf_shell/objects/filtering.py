"""What conditions (`qmf.views.conditions`) compare of the objects of a class, and where they search for words.

A word is found in the index and the title of an object, and in the texts of columns that were asked for. A reference is
compared by the name of its object or, as in ``queueRef=#101``, by its short id.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from qmf.errors import NotFoundError
from qmf.schema import ClassSchema
from qmf.views.conditions import (
    Condition,
    ConditionError,
    Field,
    FindField,
    ObjectFilter,
    compile_filter,
    searched_words,
)
from qmf.views.conditions.fields import value_text
from qmf.views.fields import fields_of
from qmf.views.objects import ObjectKey, ObjectView, field_value
from qmf.views.text import clean
from qmf_shell.objects.columns import ALL_COLUMNS
from qmf_shell.objects.fields import find_field
from qmf_shell.session.short_ids import ShortIds

#: What ends the name of the growth of a counter per second.
RATE = ".rate"


def object_filter(
    condition: Condition | None, schemas: Sequence[ClassSchema], ids: ShortIds, columns: Sequence[str] = ()
) -> ObjectFilter:
    """The filter for a condition on objects of a class.

    Args:
        condition: the condition; None for all objects.
        columns: names of the columns in whose texts words are searched for, besides the names of an object.

    Raises:
        NotFoundError: the class has no such field.
        ConditionError: a text is not a value of the field's type, or not a regular expression.
    """
    return compile_filter(condition, field_finder(schemas, ids), _search_text(schemas, columns))


def refuse_values_alone(condition: Condition, schemas: Sequence[ClassSchema]) -> None:
    """Refuse a condition with the name of a value alone, for a command that changes objects.

    It would be searched for as a word, where `has` may be meant, and other objects would be changed.

    Raises:
        ConditionError: there is such a name.
    """
    for word in searched_words(condition):
        if any(word in fields_of(schema) for schema in schemas):
            reason = f"{word} is a value of {clean(schemas[0].name)}: write has {word}, or compare it, as in {word}=..."
            raise ConditionError(reason)


def field_finder(
    schemas: Sequence[ClassSchema], ids: ShortIds, record: Callable[[Any], ObjectView] = lambda item: item
) -> FindField:
    """Finds the fields of a class by their names; raises `NotFoundError` for others.

    Args:
        record: the object of what is tested; by default that is one.
    """

    def find(name: str) -> Field:
        try:
            field = find_field(schemas, name)
        except NotFoundError:
            if name.lower().endswith(RATE) and find_field(schemas, name[: -len(RATE)]).is_number:
                reason = f"{name}: rates are compared in the filter of a live screen only"
                raise ConditionError(reason) from None
            raise
        return Field(
            name=field.name,
            read=lambda item: field_value(record(item), field),
            type=field.type,
            unit=field.unit,
            parse=(lambda text: _short_id(text, ids)) if field.is_reference else None,
            wire_name=field.wire_name,
        )

    return find


def _short_id(text: str, ids: ShortIds) -> ObjectKey | None:
    number = text.removeprefix("#")
    if number == text or not (number.isascii() and number.isdigit()):
        return None
    entry = ids.entry(int(number))
    if entry is None:
        raise NotFoundError("object with the short id", text)
    return entry.identity.key


def _search_text(schemas: Sequence[ClassSchema], columns: Sequence[str]) -> Callable[[ObjectView], str]:
    every = {field.name.lower(): field for field in fields_of(*schemas).values()}
    wanted = [name.lower() for name in columns]
    whole = any(name in ALL_COLUMNS for name in wanted)
    texts = [field for name, field in every.items() if (whole or name in wanted) and not field.is_number]

    def search_text(item: ObjectView) -> str:
        values = (field_value(item, field) for field in texts)
        names = (item.identity.index, item.identity.title)
        return "\n".join((*names, *(value_text(value) for value in values if value is not None)))

    return search_text
