"""The session over a real broker and the real host agent, in this process; and what the console says as our values."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import attrs
import pytest
from qmf_shell.commands import standard
from qmf_shell.modes.executor import Outcome, execute
from qmf_shell.session.backend import ObjectIdentity, ObjectKey
from qmf_shell.session.console_backend import BackendCallbacks, ConsoleBackend
from qmf_shell.session.console_values import index_text, title_text
from qmf_shell.session.opening import OpenSession, open_session
from shell.world import FILESYSTEM, PROCESS, make_output

from qmf.broker import EmbeddedBroker
from qmf.errors import ConnectError, DisconnectedError
from qmf.schema import TYPES, ClassSchema, Property


@pytest.mark.parametrize(
    ("name", "schema", "values", "index"),
    [
        ("org.example:filesystem:/home", FILESYSTEM, {}, "/home"),
        ("org.example:filesystem:a:b", FILESYSTEM, {}, "a:b"),
        ("org.example:filesystem:org.example:disk:sda,org.example:a:b,/x", FILESYSTEM, {}, "sda,b,/x"),
        ("org.example:filesystem:org.example:disk:", FILESYSTEM, {}, "org.example:disk:"),
        ("widget-3", FILESYSTEM, {"mountPoint": "/x"}, "/x"),
        ("widget-3", FILESYSTEM, {}, "widget-3"),
        ("widget-3", PROCESS, {"pid": 7}, "7"),
        ("org.example:filesystem:org.example:disk:org.example:host:alpha,/,/x", FILESYSTEM, {}, "alpha,/,/x"),
        ("org.example:filesystem:", FILESYSTEM, {"mountPoint": "/x"}, ""),
        ("other:filesystem:/x", FILESYSTEM, {}, "other:filesystem:/x"),
    ],
)
def test_index(name: str, schema: ClassSchema, values: dict[str, object], index: str) -> None:
    assert index_text(name, schema, values) == index


def test_title_is_a_name_that_is_no_key() -> None:
    def schema(index: bool) -> ClassSchema:
        return ClassSchema(package="p", name="c", properties=(Property(name="name", type=TYPES["sstr"], index=index),))

    assert title_text(schema(False), {"name": "init"}) == "init"
    assert title_text(schema(True), {"name": "eth0"}) == ""
    assert title_text(PROCESS, {"name": "x"}) == ""


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def opened() -> Iterator[OpenSession]:
    with open_session([], timeout=10, interval=0.2, follow=True, registry=standard()) as session:
        yield session


def test_the_embedded_default_has_something_to_look_at(opened: OpenSession) -> None:
    context = opened.context
    (agent,) = context.backend.agents()
    assert agent.product == "host"
    names = {key.name for key in context.classes()}
    assert {"system", "memory", "process"} <= names
    lines = "agents,list,list memory,show physical,schema,schema process"
    for line in (*lines.split(","), f"call {agent.instance} echo 7 hi"):
        output = make_output()
        assert execute(line, context, output.screen) is Outcome.DONE, output.errors
    assert "hi" in output.out.getvalue()


def test_an_object_is_found_again_by_its_name_whatever_the_epoch(opened: OpenSession) -> None:
    source = opened.context.backend
    (memory,) = source.objects([("qmf.host", "memory")]).items
    assert source.get(memory.identity) is not None
    older = attrs.evolve(memory.identity, key=attrs.evolve(memory.identity.key, epoch=1))
    again = source.get(older)
    assert again is not None
    assert again.identity.key == memory.identity.key
    assert source.get(ObjectIdentity(ObjectKey("no:such:agent", "x"), memory.identity.class_key, "x")) is None
    assert source.get(attrs.evolve(memory.identity, key=ObjectKey(memory.identity.key.agent, "x"))) is None


def test_values_are_the_same_one_by_one_and_all_at_once(opened: OpenSession) -> None:
    (memory,) = opened.context.backend.objects([("qmf.host", "memory")]).items
    values = memory.values
    first = {name: values[name] for name in ("name", "systemRef", "total")}
    assert isinstance(first["systemRef"], ObjectKey)
    with pytest.raises(KeyError):
        values["nosuch"]
    whole = dict(values)
    assert {name: whole[name] for name in first} == first
    assert (len(values), "nosuch" in values, "used" in values) == (len(whole), False, True)


def test_a_lost_broker_is_told() -> None:
    lost = threading.Event()
    callbacks = BackendCallbacks(on_change=lost.set)
    with (
        EmbeddedBroker() as broker,
        ConsoleBackend(broker.url, timeout=0.2, callbacks=callbacks, objects=False) as live,
    ):
        before = live.status
        lost.clear()
        broker.close()
        assert lost.wait(10)
        after = live.status
        assert (before.connected, after.connected) == (True, False)
        assert after.reason
        with pytest.raises(DisconnectedError):
            live.objects([("qmf.host", "memory")])


def test_nobody_there() -> None:
    with EmbeddedBroker() as broker:
        url = broker.url
    with (
        pytest.raises(ConnectError, match="refused"),
        ConsoleBackend(url, timeout=5, callbacks=BackendCallbacks(), objects=False),
    ):
        pass
