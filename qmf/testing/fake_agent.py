"""An agent for tests of consoles: objects, methods and events that a test defines, and faults on demand.

It uses a real agent, so that queries, predicates, subscriptions and schema requests are answered correctly. Classes
come from a schema; nothing has to be generated.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any, Self, TypeVar, overload
from uuid import UUID

from qmf._closable import AsyncClosable
from qmf.agent import AccessRequest, Action, Agent, Clock, Event, ManagedObject
from qmf.bus import MemoryExchange
from qmf.errors import CallerError, NotFoundError
from qmf.schema import Access, ClassKey, ClassSchema, EventSchema, Schema, Severity, zero_value
from qmf.testing.dynamic_classes import Answer, assign, event_maker, managed_class
from qmf.testing.hanging_bus import HangingBus

TManaged = TypeVar("TManaged", bound=ManagedObject)

#: Implements a method: called with the object, and the inputs by name; returns the outputs by name, or None.
#: It may be a coroutine function, and raise `qmf.agent.MethodError` to refuse.
Handler = Callable[..., Answer | Awaitable[Answer]]

AnySchema = Schema | ClassSchema | EventSchema

#: Functions that make values of index properties that a test does not specify, by type.
_NUMBERED: Mapping[type, Callable[[int], object]] = {
    str: str,
    int: int,
    float: float,
    UUID: lambda number: UUID(int=number),
}


class FakeAgent(AsyncClosable):
    """An agent with the objects that a test adds: ``async with FakeAgent(exchange, SCHEMA) as fake``.

    It publishes when `publish` is called and otherwise each `interval`; queries see changes at once. `add`, `remove`,
    `set`, `raise_event` and `on` may be called from any thread and before the start.

    Attributes:
        silent: while true, it answers nothing, as if it hung; messages that it receives meanwhile are lost.
        refusal: if not empty, all requests are refused with this reason.
        requests: the requests of consoles, in order.
        agent: the underlying agent; another one after `restart`.
    """

    def __init__(
        self,
        target: MemoryExchange | str,
        *schemas: AnySchema,
        name: str = "example.org:fake:1",
        epoch: int = 1,
        interval: float = 10.0,
        clock: Clock | None = None,
        **options: Any,
    ) -> None:
        """Make an agent; nothing is connected yet.

        Args:
            target: the exchange that the console's bus is on, or a broker's URL.
            schemas: its classes and events: a whole schema (`qmf.schema.read_schema`, or ``SCHEMA`` of a generated
                package), or single ones.
            name: ``vendor:product:instance``.
            epoch: number of its first start.
            interval: seconds between publications and between heartbeats.
            clock: the source of the time.
            options: more options of `qmf.agent.Agent`.

        Raises:
            CallerError: the name does not have that form, or an option is invalid for `Agent`.
        """
        parts = name.split(":", 2)
        if len(parts) != 3:
            raise CallerError(f"the name of an agent is vendor:product:instance, not {name!r}")
        vendor, product, instance = parts
        self._target = target
        self._options: dict[str, Any] = {
            "vendor": vendor,
            "product": product,
            "instance": instance,
            "interval": interval,
            "clock": clock,
            **options,
            "access": self._note,
        }
        self.silent = False
        self.refusal = ""
        self.requests: list[AccessRequest] = []
        self._schemas: dict[ClassKey, ClassSchema | EventSchema] = {}
        self._classes: dict[ClassKey, type[ManagedObject]] = {}
        self._events: dict[ClassKey, Callable[[Mapping[str, object]], Event]] = {}
        self._handlers: dict[tuple[str, str], Handler] = {}
        for item in _each(schemas):
            self._schemas[item.key] = item
            if isinstance(item, ClassSchema):
                self._classes[item.key] = managed_class(item, self._dispatch)
            else:
                self._events[item.key] = event_maker(item)
        self._make(epoch)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    @property
    def name(self) -> str:
        """``vendor:product:instance``."""
        return self.agent.name

    # -- life

    async def start(self) -> None:
        """Connect and announce itself; raises as `Agent.start`."""
        await self._bus.open()
        await self.agent.start()

    async def close(self) -> None:
        """Say goodbye and disconnect."""
        await self.agent.close()
        await self._bus.close()

    async def vanish(self) -> None:
        """Disconnect without a last heartbeat, as an agent that was killed."""
        await self._bus.close()
        await self.agent.close()

    async def restart(self) -> None:
        """Be killed and start again, with the next epoch and without objects."""
        await self.vanish()
        self._make(self.agent.epoch + 1)
        await self.start()

    async def publish(self) -> None:
        """Publish what changed, and a heartbeat, now."""
        await self.agent.publish()

    # -- objects, events and methods

    @overload
    def add(self, what: TManaged, /) -> TManaged: ...
    @overload
    def add(self, what: str, /, *, _key: str | None = None, **values: object) -> Any: ...
    def add(self, what: ManagedObject | str, /, *, _key: str | None = None, **values: object) -> Any:
        """Add an object.

        Args:
            what: name of a class in any case; or an object of a generated class, which implements its methods.
            _key: last part of its id, instead of its index properties.
            values: by schema name, as for `set`. Required values that are not given are zero or empty; index
                properties are numbered.

        Returns:
            the object, a `ManagedObject`. Its attributes have the names of the schema, e.g.
            ``queue.msgTotalEnqueues.inc()``.

        Raises:
            NotFoundError: no such class, or no such value.
            ConstraintError: a value does not fit.
            DuplicateObjectError: another object has the key.
        """
        if isinstance(what, ManagedObject):
            self.agent.add(what)
            return what
        cls = self._class(what)
        schema = cls._qmf_schema_
        # Constant values can be given to a new object only; values with an accessor can't.
        first = {item.name: values[item.name] for item in schema.properties if item.name in values}
        obj = cls(**{**self._invent_values(schema), **first})
        for name, value in values.items():
            if name not in first:
                assign(obj, name, value)
        self.agent.add(obj, _key)
        return obj

    def set(self, obj: ManagedObject, /, **values: object) -> None:
        """Change values of an object.

        Args:
            obj: the object.
            values: by schema name. For a hilo its value, or ``(value, high, low)``; for an mma a list of samples.

        Raises:
            CallerError: no such value, or it cannot change.
            ConstraintError: a value does not fit.
        """
        for name, value in values.items():
            assign(obj, name, value)

    def remove(self, obj: ManagedObject, /) -> None:
        """Remove an object; raises as `Agent.remove`."""
        self.agent.remove(obj)

    @overload
    def raise_event(self, what: Event, /, *, _severity: Severity | int | None = None) -> None: ...
    @overload
    def raise_event(self, what: str, /, *, _severity: Severity | int | None = None, **arguments: object) -> None: ...
    def raise_event(
        self, what: Event | str, /, *, _severity: Severity | int | None = None, **arguments: object
    ) -> None:
        """Raise an event.

        Args:
            what: name of its class in any case, or a generated event.
            _severity: instead of the severity in the schema.
            arguments: by name.

        Raises:
            NotFoundError: no such event.
            CallerError: an argument is missing or unknown.
            ConstraintError: an argument does not fit.
        """
        if isinstance(what, str):
            events = {key.name.lower(): make for key, make in self._events.items()}
            if what.lower() not in events:
                raise NotFoundError("event", what, (key.name for key in self._events))
            what = events[what.lower()](arguments)
        self.agent.raise_event(what, severity=_severity)

    def on(self, name: str, method: str, handler: Handler | None = None) -> Callable[[Handler], Handler]:
        """Define what a method does; methods without a handler answer "not implemented".

        Args:
            name: class, in any case.
            method: method.
            handler: called with the object, and the inputs by name. Without it, the result is a decorator:
                ``@fake.on("queue", "purge")``.

        Raises:
            NotFoundError: no such class or method.
        """
        schema = self._class(name)._qmf_schema_
        if schema.method(method) is None:
            raise NotFoundError(f"{schema.name} method", method, (item.name for item in schema.methods))

        def register(handler: Handler) -> Handler:
            self._handlers[schema.name, method] = handler
            return handler

        if handler is not None:
            register(handler)
        return register

    @property
    def calls(self) -> list[tuple[str, Mapping[str, object]]]:
        """The method calls received, including refused ones: name and inputs."""
        return [(item.method or "", item.arguments) for item in self.requests if item.action is Action.METHOD]

    # -- inside

    def _make(self, epoch: int) -> None:
        self._bus = HangingBus(self._target, lambda: self.silent)
        self.agent = Agent(self._bus, epoch=epoch, **self._options)
        self.agent.register(*self._schemas.values())

    def _note(self, request: AccessRequest) -> bool | str:
        self.requests.append(request)
        return self.refusal or True

    def _class(self, name: str) -> type[ManagedObject]:
        for key, cls in self._classes.items():
            if key.name.lower() == name.lower():
                return cls
        raise NotFoundError("class", name, (cls._qmf_schema_.name for cls in self._classes.values()))

    def _invent_values(self, schema: ClassSchema) -> dict[str, object]:
        number = len(self.agent.objects) + 1
        made: dict[str, object] = {}
        for item in schema.properties:
            if item.index:
                zero = zero_value(item.type)
                make = _NUMBERED.get(type(zero))
                made[item.name] = zero if make is None else make(number)
            elif item.access is Access.RC:
                made[item.name] = zero_value(item.type)
        return {name: value for name, value in made.items() if value is not None}

    async def _dispatch(self, obj: ManagedObject, method: str, inputs: Mapping[str, object]) -> Answer:
        handler = self._handlers.get((obj._qmf_schema_.name, method))
        if handler is None:
            raise NotImplementedError
        found = handler(obj, **inputs)
        return await found if inspect.isawaitable(found) else found


def _each(schemas: Iterable[AnySchema]) -> Iterator[ClassSchema | EventSchema]:
    for item in schemas:
        if isinstance(item, Schema):
            yield from item
        else:
            yield item
