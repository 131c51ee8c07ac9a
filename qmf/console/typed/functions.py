"""What programs do with typed proxies besides reading values and calling methods."""

from __future__ import annotations

from typing import TypeVar

from qmf.console.aio.objects.remote_event import RemoteEvent
from qmf.console.aio.objects.remote_object import RemoteObject
from qmf.console.typed.attributes import Attribute
from qmf.console.typed.events import TypedEvent
from qmf.console.typed.objects import TypedObject
from qmf.console.typed.values import is_class
from qmf.protocol import ObjectId

TObject = TypeVar("TObject", bound=TypedObject)
TEvent = TypeVar("TEvent", bound=TypedEvent)


def remote_of(obj: TypedObject) -> RemoteObject:
    """The remote object that a proxy wraps, with its schema, timestamps and values that are not in the schema."""
    return obj._qmf_remote


def object_id(obj: TypedObject) -> ObjectId:
    """The id of a proxy's object, agent name included."""
    return obj._qmf_remote.object_id


def agent_of(obj: TypedObject) -> str:
    """Name of the agent of a proxy's object."""
    return obj._qmf_remote.agent


async def update(obj: TypedObject, timeout: float | None = None) -> None:
    """Ask the agent for the current values; see `RemoteObject.update`."""
    await obj._qmf_remote.update(timeout)


async def follow(
    obj: TypedObject, reference: Attribute[ObjectId | None], kind: type[TObject], timeout: float | None = None
) -> TObject | None:
    """The object that a reference points to: ``await follow(binding, Binding.queueRef, Queue)``.

    Args:
        obj: the object with the reference.
        reference: the attribute of its class.
        kind: the generated class of the other object.
        timeout: seconds to wait; None for the client's.

    Returns:
        the object, or None when the reference is not set.

    Raises:
        CallerError: the object found is of another class.
        Others as of `RemoteObject.follow`.
    """
    found = await obj._qmf_remote.follow(reference.schema_name, timeout)
    return None if found is None else kind(found)


def typed_object(remote: RemoteObject, *kinds: type[TObject]) -> TObject | None:
    """A remote object as an instance of the first of these generated classes that fits; None when none fits."""
    return next((kind(remote) for kind in kinds if is_class(remote.class_key, kind._qmf_schema_.key)), None)


def typed_event(event: RemoteEvent, *kinds: type[TEvent]) -> TEvent | None:
    """An event as an instance of the first of these generated classes that fits; None when none fits.

    Raises:
        ProtocolError: as of the class's own `_qmf_wrap`.
    """
    return next((kind._qmf_wrap(event) for kind in kinds if is_class(event.class_key, kind._qmf_schema_.key)), None)
