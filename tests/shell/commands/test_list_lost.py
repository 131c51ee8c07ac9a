"""`list` of objects whose agent is gone."""

from __future__ import annotations

import json

import pytest
from qmf_shell.commands import standard
from qmf_shell.render.styles import OutputStyle
from qmf_shell.session.context import Context
from qmf_shell.session.opening import open_session
from qmf_shell.session.recent import LostIdentity
from shell.fakes import BETA, NOON, SECOND, FakeBackend, filesystem
from shell.line_runner import failure, printed, run
from support.waiting import wait_until

from qmf.agent import Agent
from qmf.broker import EmbeddedBroker
from qmf.models.host import agent as model

LOST = NOON + 5 * SECOND


def lose(context: Context, backend: FakeBackend, index: str, agent: str = BETA, **more: bool) -> None:
    """An object of an agent that is gone."""
    item = filesystem(index, agent)
    backend.records = [one for one in backend.records if one.identity.key != item.identity.key]
    context.lost.add([LostIdentity(item.identity, item.created, LOST, **more)])


def test_lost_objects_are_listed_with_the_time(context: Context, backend: FakeBackend) -> None:
    lose(context, backend, "/lost")
    lines = printed(context, "list filesystem")
    assert lines[0] == "org.example:filesystem, 2 objects, 1 lost"
    assert "Lost" in lines[1]
    (row,) = (line for line in lines if "/lost" in line)
    assert "2024-05-01 12:00:05" in row
    assert row.rstrip().endswith(BETA)
    assert "/lost" not in "\n".join(printed(context, "list filesystem active"))
    assert "/lost" not in "\n".join(printed(context, "list filesystem where threshold > 1"))
    record = json.loads(run(context, "list filesystem", style=OutputStyle.JSON).lines[-1])
    assert (record["index"], record["lost"]) == ("/lost", "2024-05-01T12:00:05.000000000Z")


def test_only_lost_objects(context: Context, backend: FakeBackend) -> None:
    assert printed(context, "list --lost") == ["No object is lost."]
    assert printed(context, "list --lost filesystem") == ["No object is lost."]
    lose(context, backend, "/b")
    lose(context, backend, "/a")
    lines = printed(context, "list -l")
    assert lines[0] == "2 lost objects"
    assert [line.split()[2] for line in lines[3:]] == ["/a", "/b"]
    assert printed(context, "list --lost filesystem") == lines
    assert printed(context, "list --lost process") == ["No object is lost."]
    assert "no class 'nosuch'" in failure(context, "list --lost nosuch")
    assert "--lost takes a class only" in failure(context, "list --lost filesystem where a = 1")


def test_the_classes_count_them(context: Context, backend: FakeBackend) -> None:
    assert "Lost" not in printed(context, "list")[1]
    lose(context, backend, "/lost")
    lines = printed(context, "list")
    assert lines[1].split() == ["Package", "Class", "Active", "Destroyed", "Lost"]
    (row,) = (line.split() for line in lines if "filesystem" in line)
    assert row == ["org.example", "filesystem", "2", "0", "1"]
    # With its only agent, the class is gone.
    backend.keys = [key for key in backend.keys if key.name != "filesystem"]
    backend.records = []
    assert any(line.split() == ["org.example", "filesystem", "0", "0", "1"] for line in printed(context, "list"))
    assert printed(context, "list filesystem")[0] == "1 lost object"


def test_many_are_counted(context: Context, backend: FakeBackend) -> None:
    for number in range(25):
        lose(context, backend, f"/{number}")
    lines = printed(context, "list filesystem")
    assert lines[0] == "org.example:filesystem, 2 objects, 25 lost"
    assert lines[-1] == "5 more are lost: list --lost shows them"
    assert len(printed(context, "list --lost")) == 3 + 25


def test_a_lost_object_takes_no_name_from_one_that_exists(context: Context, backend: FakeBackend) -> None:
    printed(context, "list filesystem")
    lose(context, backend, "/", BETA)
    assert printed(context, "show /")[0] == "org.example:filesystem /"
    backend.records = [item for item in backend.records if item.identity.index != "/home"]
    assert "no object '/home'" in failure(context, "show /home")
    assert failure(context, "show nosuch") == "error: no object 'nosuch'"
    lose(context, backend, "/usr")
    assert failure(context, "show /usr").endswith(f"(filesystem /usr) is lost: its agent {BETA} is gone")
    backend.records.append(filesystem("/home", "example.org:host:gamma"))
    lose(context, backend, "/home", "example.org:host:alpha")
    assert "example.org:host:gamma" in "\n".join(printed(context, "show /home"))
    error = failure(context, "show 102")
    assert error == "error: object 102 (filesystem /home) is lost: its agent example.org:host:alpha is gone"


def test_one_that_exists_again_is_not_lost(context: Context, backend: FakeBackend) -> None:
    lose(context, backend, "/back")
    backend.records.append(filesystem("/back", BETA))
    assert printed(context, "list --lost") == ["No object is lost."]
    assert printed(context, "list filesystem")[0] == "org.example:filesystem, 3 objects"


def test_agents_that_come_back(context: Context, backend: FakeBackend) -> None:
    lose(context, backend, "/")
    context.lost.agent_found("example.org:host:gamma", "", 0)
    context.lost.agent_found(BETA, "another broker", 0)
    assert len(context.lost.of()) == 1
    context.lost.agent_found(BETA, "", 0)
    assert context.lost.of() == []


def test_what_tools_made_for_themselves_is_left_out(context: Context, backend: FakeBackend) -> None:
    lose(context, backend, "/own", own=True)
    assert printed(context, "list --lost") == ["No object is lost."]
    context.show_own = True
    assert len(context.lost.of(everything=context.everything)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("follow", [True, False])
def test_an_agent_that_ends(follow: bool) -> None:
    with EmbeddedBroker() as broker:
        agent = Agent.run_in_thread(broker.url, vendor="example.org", product="test", instance="1", interval=0.2)
        try:
            agent.agent.add(model.Memory(name="physical"))
            opened = open_session([broker.url], timeout=10, interval=1, follow=follow, registry=standard())
            with opened as session:
                context = session.context
                listed: list[str] = []

                def appears() -> bool:
                    listed[:] = run(context, "list memory").lines
                    return "physical" in "\n".join(listed)

                wait_until(lambda: any(key.name == "memory" for key in context.classes()))
                wait_until(appears)
                agent.close()
                wait_until(lambda: context.lost.of() != [])
                assert "1 lost" in run(context, "list memory").lines[0]
                assert run(context, "list --lost memory").lines[0] == "1 lost object"
        finally:
            agent.close()
