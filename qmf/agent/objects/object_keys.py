"""Keys of objects: the last part of their ids, made of index properties (QMF2.md 5.1)."""

from __future__ import annotations

from uuid import UUID

from qmf.agent.layout import object_state
from qmf.agent.layout.class_layout import FieldLayout
from qmf.agent.layout.references import resolve
from qmf.agent.model.managed_object import ManagedObject
from qmf.errors import CallerError


def index_key(obj: ManagedObject) -> str:
    """The index properties in schema order, joined by ``,``; a reference contributes the name of its object.

    Raises:
        CallerError: the class has no index properties, or a reference is to an object that is in no agent.
    """
    layout = object_state.layout(obj)
    if not layout.index:
        raise CallerError(f"objects of {layout.schema.name} have no index properties that could make a key")
    return ",".join(_key_part(field, object_state.value(obj, field)) for field in layout.index)


def _key_part(field: FieldLayout, value: object) -> str:
    if value is None:
        return ""
    if field.type.name == "objId":
        target = resolve(value)  # type: ignore[arg-type]  # the field's check accepts nothing else
        if target is None:
            raise CallerError(f"{field.where} is part of the key: add the object that it refers to first")
        return target.object_name
    if isinstance(value, bool):
        return "1" if value else "0"
    return str(value) if isinstance(value, (str, int, float, UUID)) else repr(value)
