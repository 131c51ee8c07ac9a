"""What the client knows of generated classes: enough to ask for their objects, and to wrap what comes."""

from __future__ import annotations

from typing import ClassVar, Protocol, Self, TypeVar

from qmf.console.aio.objects.remote_object import RemoteObject
from qmf.schema import ClassKey, ClassSchema


class GeneratedClass(Protocol):
    """A generated class, base `qmf.console.typed.TypedObject`."""

    _qmf_schema_: ClassVar[ClassSchema]

    @classmethod
    def _qmf_wrap(cls, remote: RemoteObject) -> Self: ...


P = TypeVar("P", bound=GeneratedClass)


def class_of(kind: type[GeneratedClass]) -> ClassKey:
    """The class to ask agents for: any version, since a generated class reads all that have the values it reads."""
    key = kind._qmf_schema_.key
    return ClassKey(key.package, key.name)


def wrap(kind: type[P], remote: RemoteObject) -> P:
    """A remote object as a generated class."""
    return kind._qmf_wrap(remote)
