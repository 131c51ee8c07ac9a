"""The views of `qmf-stat` take as much work for each thing in them, however many there are."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import attrs
import pytest
from qmf_shell.modes.screen import Screen
from qmf_shell.session.context import Context
from qmf_shell.stat_views import stat_view
from shell.fakes import FILESYSTEM, NOON, FakeBackend, agent, filesystem, make_output
from support.growth import growth

from qmf.schema import ClassKey
from qmf.views.objects import ObjectKey, ObjectView

#: A little more than eight times the work of an eighth: sorting.
MOST = 9.0
QPID = "org.apache.qpid.broker"
NAMES = ("broker", "connection", "session", "exchange", "queue", "subscription", "outgoing", "binding")


def _object(name: str, number: int) -> ObjectView:
    schema = attrs.evolve(FILESYSTEM, package=QPID, name=name)
    item = filesystem(f"{name}-{number}")
    key = ObjectKey(f"{QPID}:{name}:{number}", "apache.org:qpidd:1")
    values = {
        "name": f"{name}-{number}",
        "msgDepth": number * 7 % 11,
        "sessionRef": ObjectKey(f"{QPID}:session:{number}", key.agent_name),
        "queueRef": ObjectKey(f"{QPID}:queue:{number}", key.agent_name),
    }
    return ObjectView(type(item.identity)(key, schema.key, f"{name}-{number}"), schema, values, NOON, NOON)


@pytest.mark.parametrize("view", ["queues", "connections", "subscriptions", "exchanges", "agents", "overview"])
def test_views(context: Context, backend: FakeBackend, view: str) -> None:
    backend.keys = [ClassKey(QPID, name) for name in NAMES]

    def prepare(count: int) -> Callable[[], object]:
        backend.known_agents = [agent(f"example.org:crowd:{number}") for number in range(count)]
        backend.records = [_object(name, number) for name in NAMES[1:] for number in range(count)]
        backend.records.append(_object("broker", 0))
        return lambda: _show(make_output().screen, context, view)

    assert growth(prepare, 8) < MOST


def test_classes(context: Context, backend: FakeBackend) -> None:
    def prepare(count: int) -> Callable[[], object]:
        schemas = [attrs.evolve(FILESYSTEM, name=f"class{number}", hash=UUID(int=number)) for number in range(count)]
        backend.keys = [schema.key for schema in schemas]
        one = filesystem("/")
        backend.records = [
            attrs.evolve(one, identity=attrs.evolve(one.identity, class_key=schema.key)) for schema in schemas
        ]
        return lambda: _show(make_output().screen, context, "classes")

    assert growth(prepare, 16) < MOST


def _show(screen: Screen, context: Context, view: str) -> None:
    screen.show(stat_view(context, view, None))
