"""A session with the embedded broker and host agent, in this process."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import pytest
from qmf_shell.commands import standard
from qmf_shell.modes.executor import LineOutcome, execute
from qmf_shell.session.opening import OpenSession, open_session
from shell.fakes import make_output

from qmf.views.objects import ObjectIdentity, ObjectKey

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def opened() -> Iterator[OpenSession]:
    with open_session([], timeout=10, interval=0.2, follow=True, registry=standard()) as session:
        yield session


def test_the_embedded_default_has_objects(opened: OpenSession) -> None:
    context = opened.context
    agent, broker = sorted(context.backend.agents(), key=lambda item: item.product, reverse=True)
    assert (agent.product, broker.product) == ("host", "broker")
    names = {key.name for key in context.classes()}
    assert {"system", "memory", "process"} <= names
    lines = "agents,list,list memory,show physical,schema,schema process"
    for line in (*lines.split(","), f"call {agent.instance} echo 7 hi"):
        output = make_output()
        assert execute(line, context, output.screen) is LineOutcome.DONE, output.errors
    assert "hi" in output.out.getvalue()


def test_the_embedded_broker_can_be_managed_at_once(opened: OpenSession) -> None:
    shown = []
    for line in (
        'call broker create queue jobs {"qpid.max_count":5} true',
        "call broker create binding amq.direct/jobs/urgent {} true",
        "list queue active",
        "show queue:jobs",
        "call broker delete queue jobs {}",
        "list queue active",
    ):
        output = make_output()
        assert execute(line, opened.context, output.screen) is LineOutcome.DONE, output.errors
        shown.append(output.out.getvalue())
    assert "jobs" in shown[2]
    assert "qmf-in-" not in shown[2]
    assert "of agents and consoles not shown" in shown[2]
    assert "qpid.max_count" in shown[3]
    assert "jobs" not in shown[5]


def test_an_object_is_found_again_by_its_name_whatever_the_epoch(opened: OpenSession) -> None:
    source = opened.context.backend
    (memory,) = source.objects([("qmf.host", "memory")]).items
    assert source.get(memory.identity) is not None
    older = attrs.evolve(memory.identity, key=attrs.evolve(memory.identity.key, agent_epoch=1))
    again = source.get(older)
    assert again is not None
    assert again.identity.key == memory.identity.key
    assert source.get(ObjectIdentity(ObjectKey("x", "no:such:agent"), memory.identity.class_key, "x")) is None
    assert source.get(attrs.evolve(memory.identity, key=ObjectKey("x", memory.identity.key.agent_name))) is None


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


@pytest.mark.parametrize(
    "line",
    [
        "list memory where used > 1",
        "list memory columns used",
        "list memory sort used",
        "list memory physical",
        "show memory where total > 1",
        "top -p -c 1 -n 1 memory by used",
        "watch -p -c 1 -n 1 memory columns used",
        "plot -c 1 -n 1 memory used",
    ],
)
def test_a_class_name_of_two_packages_names_what_has_the_values(opened: OpenSession, line: str) -> None:
    output = make_output()
    assert execute(line, opened.context, output.screen) is LineOutcome.DONE, output.errors
    assert "physical" in output.out.getvalue()
    assert "amqp-broker" not in output.out.getvalue()


def test_a_class_name_of_two_packages_names_both(opened: OpenSession) -> None:
    output = make_output()
    assert execute("show memory", opened.context, output.screen) is LineOutcome.DONE, output.errors
    assert "physical" in output.out.getvalue()
    assert "amqp-broker" in output.out.getvalue()


@pytest.mark.parametrize("line", ["list memory where nosuch > 1", "top -p -c 1 -n 1 memory by nosuch"])
def test_a_value_that_no_class_of_a_name_has_is_an_error(opened: OpenSession, line: str) -> None:
    output = make_output()
    assert execute(line, opened.context, output.screen) is LineOutcome.FAILED
    assert output.errors == ["error: no value of Memory 'nosuch'"]
