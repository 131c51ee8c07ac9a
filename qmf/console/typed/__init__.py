"""Runtime base of generated console proxies: remote objects, events and results with the types of their schema.

`qmf-codegen` generates a module ``console.py`` for a schema. Its classes are declarations; their behaviour is here.
They are wrappers: `TypedObject` around a `RemoteObject`, `TypedEvent` around the values of a `RemoteEvent`. Generated
modules import from this package.

The names of a proxy belong to its schema: the names of `TypedObject` itself start with ``_qmf_``, which no schema name
does, and everything else that a program needs is a function (`object_id`, `agent_of`, `update`, `follow`, `remote_of`).

Classes are matched by package and name, not by hash: an agent may have another version of the class than the generated
one. Each value is checked when it is read, so that a difference matters only for the values that a program uses.
"""

from __future__ import annotations

from qmf.console.typed.attributes import Attribute, HiLoAttribute, MmaAttribute
from qmf.console.typed.events import TypedEvent
from qmf.console.typed.functions import agent_of, follow, object_id, remote_of, typed_event, typed_object, update
from qmf.console.typed.objects import Ref, TypedObject, TypedResult
from qmf.console.typed.values import UNSET, HiLo, MissingValueError, Mma, Unset
from qmf.protocol import ObjectId

__all__ = [
    "UNSET",
    "Attribute",
    "HiLo",
    "HiLoAttribute",
    "MissingValueError",
    "Mma",
    "MmaAttribute",
    "ObjectId",
    "Ref",
    "TypedEvent",
    "TypedObject",
    "TypedResult",
    "Unset",
    "agent_of",
    "follow",
    "object_id",
    "remote_of",
    "typed_event",
    "typed_object",
    "update",
]
