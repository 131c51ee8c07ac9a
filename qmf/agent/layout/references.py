"""References between objects: what an `objId` value may be set to, and the object id that it stands for.

A program refers to objects it holds; the wire refers to ids. An object gets its id when it is added to an agent, so a
reference to one that is not added yet stays pending and counts as unset.
"""

from __future__ import annotations

from qmf.errors import ConstraintError
from qmf.protocol.values import ObjectId


class Referable:
    """What a reference may point to; base of all managed objects.

    Attributes:
        _qmf_id: object id, or None until the object is added to an agent. It stays when the object is removed.
    """

    __slots__ = ("_qmf_id",)

    _qmf_id: ObjectId | None


#: How a reference is stored: an object that has no id yet, an id, or unset.
StoredReference = Referable | ObjectId | None


def check_reference(value: object, where: str) -> StoredReference:
    """Accept what a reference may be set to.

    Args:
        value: a managed object, an object id or None.
        where: what it is set to, for the error.

    Returns:
        the id where there is one already, so that the object itself is not kept alive; else the object or None.

    Raises:
        ConstraintError: `value` is something else.
    """
    if value is None or isinstance(value, ObjectId):
        return value
    if isinstance(value, Referable):
        return value._qmf_id or value
    raise ConstraintError(where, "objId", value, "must be a managed object, an object id or None")


def resolve(target: StoredReference) -> ObjectId | None:
    """The id that a stored reference stands for, or None while it is unset or pending."""
    return target._qmf_id if isinstance(target, Referable) else target


def is_pending(target: StoredReference) -> bool:
    """True while the object referred to has no id."""
    return isinstance(target, Referable) and target._qmf_id is None
