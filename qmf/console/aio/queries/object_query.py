"""Object queries: which objects a program wants, by class name, class key, generated class or object id."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar, Protocol, Self, TypeVar

import attrs

from qmf.console.aio.agents.registry import Agent
from qmf.console.aio.objects.remote_object import RemoteObject
from qmf.console.aio.queries.filters import Where
from qmf.errors import CallerError
from qmf.protocol import BROKER, ObjectId
from qmf.schema import ClassKey, ClassSchema


class GeneratedClass(Protocol):
    """A class generated from a schema; its base is `qmf.console.typed.TypedObject`."""

    _qmf_schema_: ClassVar[ClassSchema]

    @classmethod
    def _qmf_wrap(cls, remote: RemoteObject) -> Self: ...


P = TypeVar("P", bound=GeneratedClass)


@attrs.frozen
class ObjectQuery:
    """Which objects are wanted: the arguments of `Client.objects`.

    Attributes:
        name: class name in any case, or None.
        package: package of that class; None for any.
        class_key: class, or None.
        object_id: id of one object, or None. Exactly one of the three is given.
        agent: name of the only agent to ask; None for all.
        where: filter, or None.
    """

    name: str | None = None
    package: str | None = None
    class_key: ClassKey | None = None
    object_id: ObjectId | None = None
    agent: str | None = None
    where: Where | None = None

    def __attrs_post_init__(self) -> None:
        if sum(item is not None for item in (self.name, self.class_key, self.object_id)) != 1:
            raise CallerError("objects: give exactly one of name, class_key and object_id")

    @property
    def class_name(self) -> tuple[str | None, str | None]:
        """Name and package of the class, each None where not given."""
        return (self.class_key.name, self.class_key.package) if self.class_key else (self.name, self.package)

    @property
    def only_agent(self) -> str | None:
        """Name of the only agent to ask; None for all."""
        return self.agent or (self.object_id.agent_name if self.object_id else None)

    def is_for(self, agent: Agent) -> bool:
        """True when the agent is to be asked."""
        only = self.only_agent
        return only in (None, agent.name) or (agent.is_broker and only == BROKER)

    def __str__(self) -> str:
        if self.object_id is not None:
            return f"object {self.object_id}"
        name, package = self.class_name
        return f"objects of {package}:{name}" if package else f"objects of {name}"


def make_query(
    name: str | type[Any] | None,
    package: str | None,
    class_key: ClassKey | None,
    object_id: ObjectId | None,
    agent: str | Agent | None,
    where: Where | None,
) -> tuple[ObjectQuery, Callable[[RemoteObject], Any] | None]:
    """Read the arguments of `Client.objects`.

    Returns:
        the query; and, for a generated class, the function that makes its instances. The query asks for any version of
        a generated class, because an instance reads every object that has the values.

    Raises:
        CallerError: not exactly one of `name`, `class_key` and `object_id`.
    """
    only = agent.name if isinstance(agent, Agent) else agent
    if not isinstance(name, type):
        return ObjectQuery(name, package, class_key, object_id, only, where), None
    if package or class_key or object_id:
        raise CallerError(f"objects: {name.__name__} is a class already; give no package, class_key or object_id")
    key = name._qmf_schema_.key
    query = ObjectQuery(class_key=ClassKey(key.package, key.name), agent=only, where=where)
    return query, functools.partial(_wrap, name)


def _wrap(kind: type[P], remote: RemoteObject) -> P:
    return kind._qmf_wrap(remote)
