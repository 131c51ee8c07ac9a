"""A console for tests: it records everything that agents publish, and waits for expected publications.

It is a real console (`qmf.console.aio.Client`), so it sees what consoles see: values that went over the wire
and through the schema.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TypeAlias, TypeVar, overload

from qmf.agent import Event, ManagedObject
from qmf.agent.layout.references import resolve
from qmf.bus import Bus, MemoryBus, MemoryExchange
from qmf.console.aio import (
    AgentRemoved,
    CallResult,
    Client,
    EventRaised,
    HeartbeatSeen,
    Notification,
    ObjectUpdated,
    RemoteEvent,
    RemoteObject,
)
from qmf.console.typed import TypedEvent, TypedObject, remote_of
from qmf.errors import CallerError, NotFoundError
from qmf.protocol import ObjectId
from qmf.schema import ClassKey
from qmf.testing.user_bus import UserBus
from qmf.testing.waiting import PAUSE

T = TypeVar("T")
TObject = TypeVar("TObject", bound=TypedObject)
TEvent = TypeVar("TEvent", bound=TypedEvent)

#: A class: its name in any case, or a generated class of either side.
ObjectClass: TypeAlias = "str | type[ManagedObject] | type[TypedObject]"
EventClass: TypeAlias = "str | type[Event] | type[TypedEvent]"

#: An object.
Target: TypeAlias = "ManagedObject | TypedObject | RemoteObject | ObjectId"

#: How many of the latest notifications an error lists.
LISTED = 10


class Recorder:
    """Records what agents publish, in order; waits for expected publications, and calls methods.

    Open it before the agents start: ``async with Recorder(exchange) as recorder``. Classes are given by name, or as
    generated classes; with a class of a generated ``console`` module, objects and events are typed.

    Attributes:
        client: the underlying client, for everything else: queries, schemas, following.
        notifications: all notifications received, oldest first.
    """

    def __init__(
        self, target: MemoryExchange | Bus | str, *, domain: str = "default", timeout: float = 5.0, user: str = ""
    ) -> None:
        """Make a recorder; nothing is connected yet.

        Args:
            target: the exchange that the agents' buses are on; or another bus, or a broker's URL.
            domain: QMF domain.
            timeout: seconds to wait for publications and answers when a call does not specify it.
            user: user id that agents receive with requests; only on a memory exchange.

        Raises:
            CallerError: a user on a bus whose broker determines the user id.
        """
        if isinstance(target, MemoryExchange):
            target = UserBus(target, user) if user else MemoryBus(target)
        elif user:
            raise CallerError("the broker determines the user id; only on a memory exchange can it be chosen")
        self.client = Client(target, domain=domain, timeout=timeout, settle=0.0)
        self.notifications: list[Notification] = []
        self._received = asyncio.Event()
        self._living: dict[ObjectId, RemoteObject] = {}
        self.client.listen(self._on_notification)

    async def __aenter__(self) -> Self:
        await self.client.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.client.close()

    def clear(self) -> None:
        """Forget the notifications up to now; the present objects stay known."""
        self.notifications.clear()

    # -- what was published

    @overload
    def objects(self, kind: type[TObject], /) -> list[TObject]: ...
    @overload
    def objects(self, kind: str | type[ManagedObject], /) -> list[RemoteObject]: ...
    def objects(self, kind: ObjectClass, /) -> list[Any]:
        """The present objects of a class, as published, each with its latest values.

        Args:
            kind: the class.
        """
        return [_view(kind, obj) for obj in self._living.values() if _fits(kind, obj.class_key)]

    @overload
    def publications(self, kind: type[TObject], /) -> list[TObject]: ...
    @overload
    def publications(self, kind: str | type[ManagedObject], /) -> list[RemoteObject]: ...
    def publications(self, kind: ObjectClass, /) -> list[Any]:
        """Each publication of objects of a class, in order, with all values that were known then.

        Deletions are among them: `RemoteObject.is_deleted`.

        Args:
            kind: the class.
        """
        return [_view(kind, item.object) for item in self._of(ObjectUpdated) if _fits(kind, item.object.class_key)]

    @overload
    def events(self, kind: type[TEvent], /) -> list[TEvent]: ...
    @overload
    def events(self, kind: str | type[Event], /) -> list[RemoteEvent]: ...
    def events(self, kind: EventClass, /) -> list[Any]:
        """The events of a class that were raised, in order.

        Args:
            kind: the class.
        """
        return [_to_typed(kind, item.event) for item in self._of(EventRaised) if _fits(kind, item.event.class_key)]

    @property
    def heartbeats(self) -> int:
        """How many heartbeats were received."""
        return len(self._of(HeartbeatSeen))

    # -- waiting

    async def wait(self, condition: Callable[[], T], what: str = "", timeout: float | None = None) -> T:
        """Wait until a condition is true; it is tested after each notification, and often in between.

        Args:
            condition: called until its result is true.
            what: what is expected, for the error message.
            timeout: seconds to wait; None for the recorder's.

        Returns:
            the result of the condition.

        Raises:
            AssertionError: not in time; lists what was received.
        """
        seconds = self.client.timeout if timeout is None else timeout
        deadline = asyncio.get_running_loop().time() + seconds
        while not (result := condition()):
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0:
                raise AssertionError(f"not within {seconds:g} s: {what or 'the condition'}; {self._summary()}")
            self._received.clear()
            try:
                async with asyncio.timeout(min(left, 10 * PAUSE)):
                    await self._received.wait()
            except TimeoutError:
                continue
        return result

    @overload
    async def there(self, kind: type[TObject], /, *, _timeout: float | None = None, **values: object) -> TObject: ...
    @overload
    async def there(
        self, kind: str | type[ManagedObject], /, *, _timeout: float | None = None, **values: object
    ) -> RemoteObject: ...
    async def there(self, kind: ObjectClass, /, *, _timeout: float | None = None, **values: object) -> Any:
        """Wait until an object with such values was published and has not been deleted.

        Args:
            kind: the class.
            _timeout: seconds to wait; None for the recorder's.
            values: its values, by wire name (``waitingHigh``, ``servingCount``).

        Returns:
            the first such object.

        Raises:
            AssertionError: not in time; lists what was received.
        """

        def find() -> list[RemoteObject]:
            return [obj for obj in self._living.values() if _fits(kind, obj.class_key) and _has(obj, values)]

        return _view(kind, (await self.wait(find, _describe_wanted("an object", kind, values), _timeout))[0])

    async def deletion(self, kind: ObjectClass, /, *, _timeout: float | None = None, **values: object) -> RemoteObject:
        """Wait until the deletion of an object with such values was published since the last `clear`.

        Args:
            kind, _timeout, values: as for `there`.

        Returns:
            the object with its last values.

        Raises:
            AssertionError: not in time; lists what was received.
        """

        def find() -> list[RemoteObject]:
            objects = [item.object for item in self._of(ObjectUpdated) if _fits(kind, item.object.class_key)]
            return [obj for obj in objects if obj.is_deleted and _has(obj, values)]

        return (await self.wait(find, _describe_wanted("the deletion of", kind, values), _timeout))[0]

    @overload
    async def event(self, kind: type[TEvent], /, *, _timeout: float | None = None, **arguments: object) -> TEvent: ...
    @overload
    async def event(
        self, kind: str | type[Event], /, *, _timeout: float | None = None, **arguments: object
    ) -> RemoteEvent: ...
    async def event(self, kind: EventClass, /, *, _timeout: float | None = None, **arguments: object) -> Any:
        """Wait until an event with such arguments was raised since the last `clear`.

        Args:
            kind: the class.
            _timeout: seconds to wait; None for the recorder's.
            arguments: its arguments.

        Returns:
            the first such event.

        Raises:
            AssertionError: not in time; lists what was received.
        """

        def find() -> list[RemoteEvent]:
            events = [item.event for item in self._of(EventRaised) if _fits(kind, item.event.class_key)]
            return [item for item in events if arguments.items() <= item.arguments.items()]

        return _to_typed(kind, (await self.wait(find, _describe_wanted("an event", kind, arguments), _timeout))[0])

    # -- requests

    async def query(self, target: Target) -> RemoteObject:
        """Query the agent for the current state of an object, published or not.

        Args:
            target: the object; a managed object must have been added to an agent.

        Raises:
            NotFoundError: no agent has it.
            QmfError: no answer, see `qmf.console.aio.Client`.
        """
        wanted = _id(target)
        found = await self.client.objects(object_id=wanted)
        if not found:
            raise NotFoundError("object", wanted.object_name)
        return found[0]

    async def call(self, target: Target, method: str, /, *args: object, **kwargs: Any) -> CallResult:
        """Call a method.

        Args:
            target: the object, as for `query`.
            method: its name in the schema.
            args, kwargs: its inputs, see `RemoteObject.call`.

        Returns:
            the outputs.

        Raises:
            RemoteError: the agent refused; has `text` and `code`.
            NotFoundError, ConstraintError, QmfError: see `RemoteObject.call`.
        """
        return await (await self.query(target)).call(method, *args, **kwargs)

    async def set(self, target: Target, /, **values: Any) -> None:
        """Set properties as a console does.

        Args:
            target: the object, as for `query`.
            values: new values.

        Raises:
            RemoteError: the agent refused.
            NotFoundError, ConstraintError, QmfError: see `RemoteObject.set`.
        """
        await (await self.query(target)).set(**values)

    # -- inside

    def _on_notification(self, item: Notification) -> None:
        self.notifications.append(item)
        match item:
            case ObjectUpdated(object=obj) if obj.is_deleted:
                self._living.pop(obj.object_id, None)
            case ObjectUpdated(object=obj):
                self._living[obj.object_id] = obj
            case AgentRemoved(agent=agent):
                self._living = {key: obj for key, obj in self._living.items() if obj.agent != agent.name}
        self._received.set()

    def _of(self, kind: type[T]) -> list[T]:
        return [item for item in self.notifications if isinstance(item, kind)]

    def _summary(self) -> str:
        if not self.notifications:
            return "nothing was received"
        return "received, the latest last: " + "; ".join(_line(item) for item in self.notifications[-LISTED:])


def _line(item: Notification) -> str:
    match item:
        case ObjectUpdated(object=obj):
            return f"{'deletion of ' if obj.is_deleted else ''}{obj.object_id.object_name} {dict(obj.data.values)}"
        case EventRaised(event=event):
            return f"event {event.class_key} {dict(event.arguments)}"
    return type(item).__name__


def _describe_wanted(what: str, kind: ObjectClass | EventClass, values: dict[str, object]) -> str:
    name = kind if isinstance(kind, str) else kind._qmf_schema_.name
    return f"{what} {name}" + (f" with {values}" if values else "")


def _fits(kind: ObjectClass | EventClass, key: ClassKey | None) -> bool:
    if key is None:
        return False
    if isinstance(kind, str):
        return key.name.lower() == kind.lower()
    own = kind._qmf_schema_.key
    return (key.package, key.name) == (own.package, own.name)


def _has(obj: RemoteObject, values: dict[str, object]) -> bool:
    return all(obj[name] == value for name, value in values.items())


def _view(kind: ObjectClass, obj: RemoteObject) -> Any:
    return kind(obj) if isinstance(kind, type) and issubclass(kind, TypedObject) else obj


def _to_typed(kind: EventClass, event: RemoteEvent) -> Any:
    return kind._qmf_wrap(event) if isinstance(kind, type) and issubclass(kind, TypedEvent) else event


def _id(target: Target) -> ObjectId:
    if isinstance(target, ObjectId):
        return target
    if isinstance(target, TypedObject):
        return remote_of(target).object_id
    if isinstance(target, RemoteObject):
        return target.object_id
    found = resolve(target)
    if found is None:
        raise CallerError(f"{target!r}: add it to an agent first")
    return found
