"""The fields of objects (`qmf.views.fields`) as users name them."""

from __future__ import annotations

from collections.abc import Sequence

from qmf.errors import NotFoundError
from qmf.schema import ClassSchema
from qmf.views import fields
from qmf.views.fields import ObjectField, fields_of
from qmf.views.text import clean
from qmf_shell.objects.word_checks import check_word


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
