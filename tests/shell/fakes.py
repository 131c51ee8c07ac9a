"""A session without a bus: invented agents, filesystems, processes and events."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC
from functools import partial
from uuid import UUID

import attrs
from qmf_shell.modes.screen import Screen
from qmf_shell.render.styles import OutputStyle
from qmf_shell.session.backend import (
    AgentRecord,
    CallOutcome,
    ClassName,
    ConnectionStatus,
    GoneObject,
    ObjectChanges,
    ObjectLimit,
    QueryResult,
)

from qmf.console.aio import ChangeKind, OrderKey, TextSearch
from qmf.errors import QmfError
from qmf.protocol import matches, place_of
from qmf.protocol.ordering import Place
from qmf.schema import (
    TYPES,
    Access,
    Argument,
    ClassKey,
    ClassSchema,
    Direction,
    EventSchema,
    Method,
    Property,
    Reference,
    Severity,
    Statistic,
)
from qmf.views.events import EventView
from qmf.views.formatting import Formatter
from qmf.views.objects import ObjectIdentity, ObjectKey, ObjectView

SECOND = 1_000_000_000
#: 2024-05-01 12:00:00 UTC
NOON = 1_714_564_800 * SECOND
ALPHA = "example.org:host:alpha"
BETA = "example.org:host:beta"

FILESYSTEM = ClassSchema(
    package="org.example",
    name="filesystem",
    hash=UUID(int=1),
    desc="A mounted filesystem",
    properties=(
        Property(name="mountPoint", type=TYPES["lstr"], access=Access.RC, index=True, desc="Where it is mounted"),
        Property(name="label", type=TYPES["sstr"], optional=True, max_len=16),
        Property(name="parent", type=TYPES["objId"], optional=True, references=Reference(None, "filesystem")),
        Property(name="threshold", type=TYPES["uint8"], access=Access.RW, unit="percent", minimum=1, maximum=100),
        Property(name="mounted", type=TYPES["absTime"]),
        Property(name="options", type=TYPES["map"]),
    ),
    statistics=(
        Statistic(name="bytesRead", type=TYPES["count64"], unit="octet", desc="Bytes read"),
        Statistic(name="openFiles", type=TYPES["hilo32"], unit="file"),
        Statistic(name="latency", type=TYPES["mmaTime"], unit="nanosecond"),
        Statistic(name="uptime", type=TYPES["deltaTime"], unit="nanosecond"),
    ),
    methods=(
        Method(
            name="echo",
            desc="Send back what it gets",
            arguments=(
                Argument(name="sequence", type=TYPES["uint32"], direction=Direction.IN_OUT, desc="Any number"),
                Argument(name="body", type=TYPES["lstr"], direction=Direction.IN_OUT, desc="Any text"),
            ),
        ),
        Method(
            name="configure",
            arguments=(
                Argument(name="options", type=TYPES["map"]),
                Argument(name="force", type=TYPES["bool"], default=False),
                Argument(name="like", type=TYPES["objId"], default="", references=Reference(None, "filesystem")),
            ),
        ),
        Method(name="sync", desc="Write everything"),
    ),
)
PROCESS = ClassSchema(
    package="org.example",
    name="process",
    hash=UUID(int=2),
    properties=(Property(name="pid", type=TYPES["uint32"], index=True),),
    methods=(
        Method(
            name="signal",
            arguments=(Argument(name="number", type=TYPES["uint8"], minimum=1, maximum=64, unit="signal"),),
        ),
    ),
)
OTHER_PROCESS = ClassSchema(package="com.other", name="process", hash=UUID(int=3))
FULL = EventSchema(
    package="org.example",
    name="filesystemFull",
    severity=Severity.WARN,
    hash=UUID(int=4),
    desc="No space is left",
    arguments=(
        Argument(name="mountPoint", type=TYPES["lstr"]),
        Argument(name="size", type=TYPES["uint64"], unit="octet"),
    ),
)
SCHEMAS: dict[ClassKey, ClassSchema | EventSchema] = {
    item.key: item for item in (FILESYSTEM, PROCESS, OTHER_PROCESS, FULL)
}


def filesystem(
    index: str, agent: str = ALPHA, *, values: Mapping[str, object] | None = None, **more: object
) -> ObjectView:
    identity = ObjectIdentity(ObjectKey(f"org.example:filesystem:{index}", agent), FILESYSTEM.key, index)
    base: dict[str, object] = {
        "mountPoint": index,
        "threshold": 90,
        "mounted": NOON - 3600 * SECOND,
        "options": {"ro": True},
        "bytesRead": 1234567,
        "openFiles": 12,
        "openFilesHigh": 20,
        "openFilesLow": 3,
        "latencyCount": 4,
        "latencyMin": 80_000,
        "latencyMax": 12_500_000,
        "latencyAvg": 3_200_000,
        "uptime": 97_925 * SECOND,
    }
    return ObjectView(
        identity, FILESYSTEM, {**base, **(values or {}), **more}, updated=NOON, created=NOON - 60 * SECOND
    )


def process(pid: int, agent: str = ALPHA) -> ObjectView:
    identity = ObjectIdentity(ObjectKey(f"org.example:process:{pid}", agent), PROCESS.key, str(pid))
    return ObjectView(identity, PROCESS, {"pid": pid}, updated=NOON, created=NOON)


def full_event(mount: str = "/", *, at: int = NOON, severity: int = 4, agent: str = ALPHA) -> EventView:
    return EventView("org.example:filesystemFull", at, severity, {"mountPoint": mount, "size": 2048}, agent, FULL)


def agent(name: str) -> AgentRecord:
    vendor, product, instance = name.split(":")
    return AgentRecord(name, vendor, product, instance, epoch=1, heartbeat=10, broker="amqp://127.0.0.1:5672")


@attrs.define
class FakeFeed:
    """Follows the objects of a `FakeBackend`: each `take` compares them with those of the one before."""

    ask: Callable[[], Sequence[ObjectView]]
    known: dict[ObjectKey, ObjectView] = attrs.field(factory=dict)
    kind: ChangeKind = ChangeKind.DELETED
    failures: dict[str, str] = attrs.field(factory=dict)
    closed: bool = False
    complete: bool = True

    def take(self) -> ObjectChanges:
        now = {item.identity.key: item for item in self.ask()}
        before, self.known = self.known, now
        gone = [GoneObject(key, self.kind, NOON) for key in before if key not in now]
        return ObjectChanges([item for key, item in now.items() if before.get(key) is not item], gone)

    def close(self) -> None:
        self.closed = True


def _place(order: Sequence[OrderKey], item: ObjectView) -> Place:
    return place_of(order, lambda name: item.identity.index if name == OrderKey.OBJECT_NAME else item.values.get(name))


@attrs.define
class FakeBackend:
    """A `Backend` over lists.

    Attributes:
        records: the objects.
        calls, assigned: what was called and set.
        asked, wheres: classes that were queried, and with which predicates.
        feeds: what is followed.
        answer, refusals, error: outputs of every call; outcomes of calls by index; an error to raise.
        gate: queries wait for it.
        keeps_limits: agents send no more than the first objects that are asked for.
        limits: how many objects the queries asked for, None for all.
    """

    records: list[ObjectView]
    status: ConnectionStatus = attrs.field(default=ConnectionStatus("amqp://127.0.0.1:5672"))
    known_agents: list[AgentRecord] = attrs.field(factory=lambda: [agent(ALPHA), agent(BETA)])
    keys: list[ClassKey] = attrs.field(factory=lambda: list(SCHEMAS))
    calls: list[tuple[str, str, dict[str, object]]] = attrs.field(factory=list)
    answer: dict[str, object] = attrs.field(factory=dict)
    error: BaseException | None = None
    asked: list[str] = attrs.field(factory=list)
    wheres: list[list[object]] = attrs.field(factory=list)
    assigned: list[tuple[str, dict[str, object]]] = attrs.field(factory=list)
    refusals: dict[str, CallOutcome] = attrs.field(factory=dict)
    stop_at: int | None = None
    gate: threading.Event | None = None
    failures: dict[str, str] = attrs.field(factory=dict)
    was_asked: threading.Event = attrs.field(factory=threading.Event)
    others: tuple[ConnectionStatus, ...] = ()
    feeds: list[FakeFeed] = attrs.field(factory=list)
    keeps_limits: bool = False
    limits: list[int | None] = attrs.field(factory=list)

    def agents(self) -> Sequence[AgentRecord]:
        return self.known_agents

    def classes(self) -> QueryResult[ClassKey]:
        return QueryResult(self.keys, self.failures)

    def schema(self, key: ClassKey) -> ClassSchema | EventSchema:
        return SCHEMAS[key]

    @property
    def statuses(self) -> Sequence[ConnectionStatus]:
        return (self.status, *self.others)

    def sends_first(self, name: ClassName) -> bool:
        return self.keeps_limits

    def objects(
        self,
        names: Sequence[ClassName],
        where: Sequence[object] = (),
        first: ObjectLimit | None = None,
        text: str = "",
    ) -> QueryResult[ObjectView]:
        self.limits.append(None if first is None else first.limit)
        self.wheres.append(list(where))
        self.asked += [f"{package}:{name}" for package, name in names]
        self.was_asked.set()
        if self.gate is not None:
            self.gate.wait(30)
        if self.error is not None:
            raise self.error
        found = [
            item for item in self.records if (item.identity.class_key.package, item.identity.class_key.name) in names
        ]
        if where:
            found = [item for item in found if matches(where, item.values)]
        if text:
            search = TextSearch(text)
            found = [
                item
                for item in found
                if search.is_in_value(item.identity.key.object_name) or search.is_in_value(dict(item.values))
            ]
        total = len(found)
        if first is not None and self.keeps_limits:
            found = sorted(found, key=partial(_place, first.order))[: first.limit]
        return QueryResult(found, self.failures, total)

    def follow(
        self, names: Sequence[ClassName], where: Sequence[object] = (), *, interval: float, recheck: float
    ) -> FakeFeed:
        self.feeds.append(FakeFeed(lambda: self.objects(names, where).items))
        return self.feeds[-1]

    def get(self, identity: ObjectIdentity) -> ObjectView | None:
        return next((item for item in self.records if item.identity.key == identity.key), None)

    def call(self, target: ObjectView, method: Method, arguments: Mapping[str, object]) -> Mapping[str, object]:
        self.calls.append((target.identity.key.object_name, method.name, dict(arguments)))
        if self.error is not None:
            raise self.error
        return self.answer

    def call_all(
        self,
        targets: Sequence[ObjectView],
        method: Method,
        arguments: Mapping[str, object],
        done: Callable[[int, CallOutcome], None],
    ) -> None:
        for number, target in enumerate(targets):
            if number == self.stop_at:
                raise KeyboardInterrupt
            try:
                answer: CallOutcome = self.call(target, method, arguments)
            except QmfError as error:
                answer = error
            done(number, self.refusals.get(target.identity.index, answer))

    def set_properties(self, target: ObjectView, values: Mapping[str, object]) -> None:
        self.assigned.append((target.identity.key.object_name, dict(values)))
        if self.error is not None:
            raise self.error


@attrs.define
class Output:
    """A screen and what was printed on it."""

    out: io.StringIO
    err: io.StringIO
    screen: Screen

    @property
    def lines(self) -> list[str]:
        return self.out.getvalue().splitlines()

    @property
    def errors(self) -> list[str]:
        return self.err.getvalue().splitlines()


def make_output(style: OutputStyle = OutputStyle.PLAIN, width: int | None = None) -> Output:
    out, err = io.StringIO(), io.StringIO()
    return Output(out, err, Screen(out, err, style, width=width, formatter=Formatter(UTC)))
