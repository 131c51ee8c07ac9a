"""Typed proxies, results and events: what they read, what they send, what they refuse, and what mypy knows of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar
from uuid import UUID

import attrs
import pytest
from console.conftest import MakeAgent, MakeClient
from support.generated import complaints
from support.scripted_agent import ALARM, PACKAGE, WIDGET, ScriptedAgent, part, widget

from qmf.console.aio import Client, EventRaised, RemoteEvent, RemoteObject
from qmf.console.typed import (
    UNSET,
    Attribute,
    HiLo,
    HiLoAttribute,
    MissingValueError,
    Mma,
    MmaAttribute,
    Ref,
    TypedEvent,
    TypedObject,
    TypedResult,
    Unset,
    agent_of,
    follow,
    object_id,
    remote_of,
    typed_event,
    typed_object,
    update,
)
from qmf.errors import CallerError, ConstraintError, PeerError, ProtocolError, RemoteError
from qmf.protocol import ExceptionResponse, MethodRequest, MethodResponse, ObjectId
from qmf.schema import ClassSchema, EventSchema, Severity


@attrs.frozen(kw_only=True)
class WidgetEchoResult(TypedResult):
    sequence: int
    body: str


@attrs.frozen(kw_only=True)
class WidgetLinkResult(TypedResult):
    made: ObjectId | None


class Widget(TypedObject):
    """As generated code has it; `self` and `level` stand for names that had to evade."""

    _qmf_schema_: ClassVar[ClassSchema] = WIDGET

    name = Attribute[str]("name")
    label = Attribute[str | None]("label")
    level_ = Attribute[int]("level")
    enabled = Attribute[bool]("enabled")
    parent = Attribute[ObjectId | None]("parent")
    turns = Attribute[int]("turns")
    load = HiLoAttribute("load")
    delay = MmaAttribute("delay")

    async def set(
        self, *, label: str | Unset | None = UNSET, level_: int | Unset = UNSET, timeout: float | None = None
    ) -> None:
        await self._qmf_set(timeout, {"label": label, "level": level_})

    async def echo(self, sequence: int, body: str, *, timeout: float | None = None) -> WidgetEchoResult:
        return await self._qmf_call("echo", timeout, WidgetEchoResult, sequence, body)

    async def link(self, target: Ref, force: bool = False, *, timeout: float | None = None) -> WidgetLinkResult:
        return await self._qmf_call("link", timeout, WidgetLinkResult, target, force)

    async def stop(self, *, timeout: float | None = None) -> None:
        await self._qmf_call("stop", timeout, None)


class Gadget(TypedObject):
    _qmf_schema_: ClassVar[ClassSchema] = attrs.evolve(WIDGET, name="gadget")


@attrs.frozen(kw_only=True)
class WidgetAlarm(TypedEvent):
    _qmf_schema_: ClassVar[EventSchema] = ALARM

    name: str
    level: int
    since: int


@attrs.frozen(kw_only=True)
class OtherAlarm(TypedEvent):
    _qmf_schema_: ClassVar[EventSchema] = attrs.evolve(ALARM, name="otherAlarm")


AGENT = "example.org:widgets:1"


async def only(client: Client) -> Widget:
    """The one widget there is."""
    (remote,) = await client.objects("widget", package=PACKAGE)
    return Widget(remote)


@pytest.fixture
async def agent(make_agent: MakeAgent) -> ScriptedAgent:
    found = await make_agent()
    found.objects = [widget("w1", parent={"_object_name": "w2"})]
    return found


@pytest.fixture
async def proxy(agent: ScriptedAgent, make_client: MakeClient) -> Widget:
    client, _ = await make_client()
    return await only(client)


# -- reading


async def test_values_have_the_types_of_the_schema(proxy: Widget) -> None:
    assert (proxy.name, proxy.label, proxy.level_, proxy.enabled, proxy.turns) == ("w1", None, 5, True, 7)
    assert proxy.parent == ObjectId("w2", AGENT)
    assert proxy.load == HiLo(value=3, high=5, low=1)
    assert proxy.delay == Mma(samples=2, min=10, max=30, average=20)


async def test_functions_return_what_is_not_a_value(proxy: Widget) -> None:
    remote = remote_of(proxy)
    assert isinstance(remote, RemoteObject)
    assert (object_id(proxy), agent_of(proxy)) == (remote.object_id, AGENT)
    assert repr(proxy) == f"<Widget w1 at {AGENT}>"


async def test_proxies_of_the_same_object_are_equal(proxy: Widget) -> None:
    other = Widget(remote_of(proxy))
    assert other == proxy
    assert len({other, proxy}) == 1
    assert proxy != remote_of(proxy)


@pytest.mark.parametrize("name", ["turns", "load", "delay"])
async def test_a_value_that_did_not_come_is_no_zero(name: str, make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent()
    agent.objects = [part("w1", {"name": "w1", "loadHigh": 5})]
    client, _ = await make_client()
    found = await only(client)
    with pytest.raises(MissingValueError, match=rf"agent {AGENT} has not sent widget\.{name}") as caught:
        getattr(found, name)
    assert isinstance(caught.value, PeerError)
    assert getattr(found, name, "none") == "none"
    assert found.parent is None
    assert found.label is None


@pytest.mark.parametrize(
    ("values", "name"), [({"level": "high"}, "level_"), ({"loadLow": []}, "load"), ({"parent": 7}, "parent")]
)
async def test_a_value_of_another_type_is_refused_when_it_is_read(
    values: dict[str, Any], name: str, make_agent: MakeAgent, make_client: MakeClient
) -> None:
    agent = await make_agent()
    agent.objects = [widget("w1", **values)]
    client, _ = await make_client()
    found = await only(client)
    with pytest.raises(ProtocolError, match=rf"widget\.{next(iter(values))} of agent {AGENT}: "):
        getattr(found, name)
    assert found.name == "w1"


async def test_update_brings_new_values(agent: ScriptedAgent, proxy: Widget) -> None:
    agent.objects = [widget("w1", turns=8)]
    await update(proxy)
    assert proxy.turns == 8


async def test_follow_gives_the_referred_object_its_type(agent: ScriptedAgent, proxy: Widget) -> None:
    agent.objects.append(widget("w2"))
    found = await follow(proxy, Widget.parent, Widget)
    assert found is not None
    assert found.name == "w2"
    assert await follow(found, Widget.parent, Widget) is None
    with pytest.raises(CallerError, match=r"is not a org\.example\.widgets:gadget"):
        await follow(proxy, Widget.parent, Gadget)


# -- which class


async def test_another_class_is_refused(proxy: Widget) -> None:
    remote = remote_of(proxy)
    with pytest.raises(CallerError, match=rf"<org.example.widgets:widget w1 at {AGENT}> is not a .*:gadget"):
        Gadget(remote)
    assert typed_object(remote, Gadget) is None
    assert typed_object(remote) is None
    found = typed_object(remote, Gadget, Widget)
    assert isinstance(found, Widget)


async def test_another_version_of_the_class_is_accepted(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent()
    other = attrs.evolve(WIDGET, hash=UUID(int=0xB1), statistics=WIDGET.statistics[:1])
    agent.schemas = [other, ALARM]
    agent.objects = [part("w1", {"name": "w1", "turns": 3}, key=other.key)]
    client, _ = await make_client()
    found = await only(client)
    assert found.turns == 3
    with pytest.raises(MissingValueError):
        _ = found.delay


def test_a_declaration_must_fit_the_schema() -> None:
    # Python 3.11 wraps what goes wrong while a class is made.
    with pytest.raises((TypeError, RuntimeError)) as caught:
        type("Bad", (TypedObject,), {"_qmf_schema_": WIDGET, "name": Attribute("nmae")})
    assert str(caught.value.__cause__ or caught.value) == "class widget has no property or statistic 'nmae'"


def test_descriptors_are_there_on_the_class() -> None:
    assert isinstance(Widget.name, Attribute)
    assert isinstance(Widget.load, HiLoAttribute)
    assert isinstance(Widget.delay, MmaAttribute)
    assert Widget.level_.schema_name == "level"


# -- setting


async def test_setting_sends_what_is_given_and_nothing_else(agent: ScriptedAgent, proxy: Widget) -> None:
    agent.methods["_set_properties"] = lambda request: MethodResponse()
    await proxy.set(level_=7)
    await proxy.set(label=None)
    assert calls(agent) == [("_set_properties", {"level": 7}), ("_set_properties", {"label": None})]
    assert proxy.level_ == 7


async def test_setting_nothing_sends_nothing(agent: ScriptedAgent, proxy: Widget) -> None:
    await proxy.set()
    assert calls(agent) == []


async def test_a_bad_value_is_not_sent(agent: ScriptedAgent, proxy: Widget) -> None:
    with pytest.raises(ConstraintError, match=r"widget\.level .*must be 1 to 9, not 10"):
        await proxy.set(level_=10)
    assert calls(agent) == []
    assert proxy.level_ == 5


async def test_the_error_of_an_assignment_names_the_alternative(proxy: Widget) -> None:
    with pytest.raises(AttributeError, match=r"await obj\.set\(level_=\.\.\.\)"):
        proxy.level_ = 7  # type: ignore[assignment]
    assert proxy.level_ == 5
    with pytest.raises(AttributeError, match=r"^'Widget' object has no attribute 'labell'; did you mean label\b"):
        proxy.labell = 7  # type: ignore[assignment]


def test_unset_reads_well() -> None:
    assert repr(UNSET) == "UNSET"


# -- calling


async def test_a_call_returns_its_result(agent: ScriptedAgent, proxy: Widget) -> None:
    assert await proxy.echo(3, "text") == WidgetEchoResult(sequence=3, body="text")
    assert calls(agent) == [("echo", {"sequence": 3, "body": "text"})]


async def test_a_method_without_outputs_returns_none(agent: ScriptedAgent, proxy: Widget) -> None:
    outcome: object = await proxy.stop()  # type: ignore[func-returns-value]
    assert outcome is None
    assert calls(agent) == [("stop", {})]


@pytest.mark.parametrize("how", [lambda proxy: proxy, remote_of, object_id], ids=["proxy", "remote object", "id"])
async def test_references_go_out_as_ids(agent: ScriptedAgent, proxy: Widget, how: Any) -> None:
    agent.methods["link"] = lambda request: MethodResponse(arguments={"made": {"_object_name": "w9"}})
    result = await proxy.link(how(proxy))
    assert result.made == ObjectId("w9", AGENT)
    ((_, sent),) = calls(agent)
    assert sent["force"] is False
    assert str(sent["target"]).count("w1") == 1


async def test_an_empty_reference_among_the_outputs_is_none(agent: ScriptedAgent, proxy: Widget) -> None:
    agent.methods["link"] = lambda request: MethodResponse()
    assert (await proxy.link(proxy)).made is None


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ({"sequence": 1}, f"agent {AGENT} left out 'body' of widget.echo"),
        ({"sequence": [], "body": "x"}, f"widget.echo.sequence of agent {AGENT}: "),
    ],
)
async def test_an_answer_that_does_not_fit_is_an_error(
    outputs: dict[str, object], message: str, agent: ScriptedAgent, proxy: Widget
) -> None:
    agent.methods["echo"] = lambda request: MethodResponse(arguments=outputs)
    with pytest.raises(ProtocolError, match=message):
        await proxy.echo(1, "x")


async def test_errors_of_calls_are_those_of_remote_objects(agent: ScriptedAgent, proxy: Widget) -> None:
    agent.methods["stop"] = lambda request: ExceptionResponse(text="not now", code=7)
    with pytest.raises(RemoteError, match="not now"):
        await proxy.stop()
    with pytest.raises(ConstraintError, match=r"argument 'sequence' of widget\.echo"):
        await proxy.echo(-1, "x")
    agent.mute.add(MethodRequest)
    with pytest.raises(TimeoutError):
        await proxy.stop(timeout=0.01)


def calls(agent: ScriptedAgent) -> list[tuple[str, dict[str, Any]]]:
    """The methods that were called, with their arguments."""
    contents = [envelope.content for envelope in agent.asked]
    return [(item.method, dict(item.arguments)) for item in contents if isinstance(item, MethodRequest)]


# -- events


async def heard(agent: ScriptedAgent, client: Client, values: dict[str, object], **options: Any) -> RemoteEvent:
    stream = client.notifications(EventRaised)
    await agent.raise_event(values, **options)
    notification = await anext(aiter(stream))
    assert isinstance(notification, EventRaised)
    return notification.event


@pytest.fixture
async def client(agent: ScriptedAgent, make_client: MakeClient) -> Client:
    found, _ = await make_client()
    return found


VALUES: dict[str, object] = {"name": "w1", "level": 8, "since": 12}


async def test_events_have_the_types_of_the_schema(agent: ScriptedAgent, client: Client) -> None:
    event = typed_event(await heard(agent, client, VALUES), OtherAlarm, WidgetAlarm)
    assert isinstance(event, WidgetAlarm)
    assert (event.name, event.level, event.since) == ("w1", 8, 12)
    assert (event.agent.name, event.timestamp, event.object_id) == (AGENT, 1_233_258_799_000_000_000, None)
    assert event.severity is Severity.WARN
    assert f"agent={AGENT}, severity=" in repr(event)


async def test_a_severity_that_qmf_does_not_define_stays_a_number(agent: ScriptedAgent, client: Client) -> None:
    event = attrs.evolve(await heard(agent, client, VALUES), severity=9)
    typed = typed_event(event, WidgetAlarm)
    assert typed is not None
    assert typed.severity == 9


async def test_an_event_of_another_class(agent: ScriptedAgent, client: Client) -> None:
    event = await heard(agent, client, VALUES)
    assert typed_event(event, OtherAlarm) is None
    with pytest.raises(CallerError, match=r"event org.example.widgets:widgetAlarm.* is not a .*:otherAlarm"):
        OtherAlarm._qmf_wrap(event)
    with pytest.raises(CallerError, match="event without class is no"):
        WidgetAlarm._qmf_wrap(attrs.evolve(event, class_key=None))


async def test_an_event_that_lacks_an_argument(agent: ScriptedAgent, client: Client) -> None:
    event = await heard(agent, client, {"name": "w1", "level": 8})
    with pytest.raises(ProtocolError, match=f"agent {AGENT} left out 'since' of widgetAlarm"):
        typed_event(event, WidgetAlarm)


# -- types

USER_CODE = '''"""What a user might write; every ignored error must be one, since unused ignores are errors."""

from __future__ import annotations

from typing import assert_type

from qmf.console.aio import RemoteEvent, RemoteObject
from qmf.console.typed import HiLo, Mma, ObjectId, follow, typed_event, typed_object
from qmf.models.broker import console as broker
from qmf.models.host.console import NetworkInterface as Interface


async def use(remote: RemoteObject, event: RemoteEvent) -> None:
    queue = broker.Queue(remote)
    assert_type(queue.name, str)
    assert_type(queue.msgDepth, int)
    assert_type(queue.vhostRef, ObjectId | None)
    assert_type(queue.consumerCount, HiLo)
    assert_type(queue.messageLatency, Mma)
    assert_type(queue.messageLatency.average, int)
    assert_type(queue.flowStopped, bool)
    await queue.purge(0, {})
    assert_type(await follow(queue, broker.Queue.vhostRef, broker.Vhost), broker.Vhost | None)
    assert_type(typed_object(remote, broker.Queue), broker.Queue | None)
    assert_type(broker.Exchange(remote), broker.Exchange)

    main = broker.Broker(remote)
    assert_type(main.dataDir, str | None)
    assert_type(await main.echo(1, "x", timeout=2.0), broker.BrokerEchoResult)
    assert_type((await main.echo(1, body="x")).body, str)
    await main.set(mgmtPubInterval=5)
    assert_type(Interface(remote).duplex, str | None)

    link = broker.Link(remote)
    await link.bridge(True, "q", "x", "k", "", "", True, True, False, 0)

    match typed_event(event, broker.QueueDeclare, broker.QueueDelete):
        case broker.QueueDeclare(qName=name, durable=durable, agent=agent):
            assert_type((name, durable, agent.name), tuple[str, bool, str])
        case broker.QueueDelete() as gone:
            assert_type((gone.qName, gone.severity, gone.timestamp), tuple[str, int, int])

    queue.msgDepth = 3  # type: ignore[assignment]
    _ = queue.nonsense  # type: ignore[attr-defined]
    queue.nonsense = 3  # type: ignore[assignment]
    queue.consumerCount.value = 3  # type: ignore[misc]
    await main.set(port=1)  # type: ignore[call-arg]
    await main.set(mgmtPubInterval="5")  # type: ignore[arg-type]
    await main.set(mgmtPubInterval=None)  # type: ignore[arg-type]
    await main.echo("1", "x")  # type: ignore[arg-type]
    await main.echo(1, "x", 2.0)  # type: ignore[call-arg]
    await follow(queue, broker.Queue.name, broker.Vhost)  # type: ignore[arg-type]
    typed_event(event, broker.Queue)  # type: ignore[type-var]
'''


@pytest.mark.slow
def test_type_checkers_know_it_all(tmp_path: Path) -> None:
    (tmp_path / "usage.py").write_text(USER_CODE)
    assert complaints(tmp_path) == ""
