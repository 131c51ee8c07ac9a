"""Lists take as much work for each thing in them, however many there are: agents, objects, classes, connections."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import attrs
import pytest
from qmf_shell.modes.executor import LineOutcome, execute
from qmf_shell.screens.opening import PageFactory
from qmf_shell.screens.pages.objects import ObjectsSpec
from qmf_shell.session.backend import ConnectionStatus
from qmf_shell.session.context import Context
from shell.fakes import FILESYSTEM, SCHEMAS, FakeBackend, agent, filesystem, make_output
from support.growth import growth

#: A little more than eight times the work of an eighth: sorting.
MOST = 9.0


def filled(backend: FakeBackend, count: int) -> None:
    """Let a backend have so many agents, brokers and objects, whose references name each other."""
    backend.known_agents = [agent(f"example.org:crowd:{number}") for number in range(count)]
    backend.others = tuple(ConnectionStatus(f"amqp://mq{number}", name=f"mq{number}") for number in range(count))
    root = filesystem("/")
    backend.records = [filesystem(f"/{number}", parent=root.identity.key, label="x") for number in range(count)]


@pytest.mark.parametrize(
    "line",
    [
        "agents",
        "list",
        "list filesystem",
        "list filesystem limit 2",
        "list filesystem where label = x sort uptime limit 2",
        "find x",
        "tree filesystem",
        "heartbeats",
    ],
)
def test_lines(context: Context, backend: FakeBackend, line: str) -> None:
    def prepare(count: int) -> Callable[[], object]:
        filled(backend, count)
        assert execute(line, context, make_output().screen) is LineOutcome.DONE  # and makes what is made once
        return lambda: execute(line, context, make_output().screen)

    assert growth(prepare, 16) < MOST


def test_classes(context: Context, backend: FakeBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    backend.records = []

    def prepare(count: int) -> Callable[[], object]:
        schemas = [attrs.evolve(FILESYSTEM, name=f"class{number}", hash=UUID(int=number)) for number in range(count)]
        backend.keys = [schema.key for schema in schemas]
        for schema in schemas:
            monkeypatch.setitem(SCHEMAS, schema.key, schema)
        return lambda: execute("list", context, make_output().screen)

    assert growth(prepare, 16) < MOST


def test_screens(context: Context, backend: FakeBackend) -> None:
    def prepare(count: int) -> Callable[[], object]:
        filled(backend, count)
        page = PageFactory(context, 1.0).objects(ObjectsSpec(name=("org.example", "filesystem"), keys=[FILESYSTEM.key]))
        page.apply(page.load())
        page.model.arranged_rows()

        def update() -> None:
            backend.records = [attrs.evolve(item, updated=item.updated + 1) for item in backend.records]
            page.apply(page.load())
            page.model.window(24)

        return update

    assert growth(prepare, 16) < MOST
