"""References between objects: values of type `objId`.

A program refers to objects; messages refer to object ids. An object gets its id when it is added to an agent, so a
reference to an object that is not added yet is pending and counts as unset.
"""

from __future__ import annotations

from qmf.errors import ConstraintError
from qmf.protocol.values import ObjectId


class Referable:
    """Base of all managed objects: the target of a reference.

    Attributes:
        _qmf_id: object id, or None until the object is added to an agent. It stays when the object is removed.
    """

    __slots__ = ("_qmf_id",)

    _qmf_id: ObjectId | None


#: How a reference is stored: an object that has no id yet, an id, or unset.
StoredReference = Referable | ObjectId | None


def check_reference(value: object, where: str) -> StoredReference:
    """Check a value for a reference.

    Args:
        value: a managed object, an object id or None.
        where: what the value belongs to, for errors.

    Returns:
        the object id if there is one, so that the object is not kept alive; else the object, or None.

    Raises:
        ConstraintError: `value` is of another type.
    """
    if value is None or isinstance(value, ObjectId):
        return value
    if isinstance(value, Referable):
        return value._qmf_id or value
    raise ConstraintError(where, "objId", value, "must be a managed object, an object id or None")


def resolve(target: StoredReference) -> ObjectId | None:
    """The object id of a stored reference, or None while it is unset or pending."""
    return target._qmf_id if isinstance(target, Referable) else target


def is_pending(target: StoredReference) -> bool:
    """True while the object of a reference has no id."""
    return isinstance(target, Referable) and target._qmf_id is None
