"""Objects of agents that are gone."""

from __future__ import annotations

from collections.abc import Callable

from console.aio.objects.remotes import AGENT, remote
from console.conftest import MakeAgent, MakeClient
from support.growth import growth
from support.scripted_agent import widget
from support.waiting import until

from qmf.console.aio import AgentAdded, AgentRemoved, ObjectUpdated, Removal
from qmf.console.aio.indications import ObjectStore
from qmf.console.aio.lost_objects import LostObjects


def names(lost: LostObjects) -> list[str]:
    return [item.object.object_id.object_name for item in lost.select(None, None, None)]


def test_objects_are_lost_with_their_agent_until_they_are_received_again() -> None:
    store = ObjectStore()
    store.update(remote(widget("a", epoch=1)))
    store.update(remote(widget("b", epoch=1, delete=5)))
    store.update(remote(widget("c", epoch=1)))
    store.agent_removed(AGENT, Removal.SILENT)
    (first, second) = store.lost.select("WIDGET", None, AGENT)
    assert first.reason is Removal.SILENT
    assert first.time > 0
    assert [first.object["name"], second.object["name"]] == ["a", "c"]
    assert store.lost.select("widget", "com.other", None) == store.lost.select("gadget", None, None) == []
    store.update(remote(widget("a", epoch=2)))
    assert names(store.lost) == ["c"]


def test_an_agent_that_comes_back_without_a_restart_has_its_objects() -> None:
    store = ObjectStore()
    for name, epoch in (("a", 1), ("b", 0)):
        store.update(remote(widget(name, epoch=epoch)))
    store.agent_removed(AGENT, Removal.DISCONNECTED)
    store.agent_added("somebody else", 1)
    assert len(store.lost) == 2
    store.agent_added(AGENT, 2)  # objects without epoch outlive its restart
    assert names(store.lost) == ["a"]
    store.agent_added(AGENT, 1)
    assert len(store.lost) == 0


def test_a_restart_loses_objects_of_the_run_before() -> None:
    store = ObjectStore()
    for name, epoch in (("a", 1), ("b", 0)):
        store.update(remote(widget(name, epoch=epoch)))
    store.agent_restarted(AGENT)
    (lost,) = store.lost.select(None, None, None)
    assert (lost.object["name"], lost.reason) == ("a", None)


def test_only_so_many_are_kept() -> None:
    lost = LostObjects(most=2)
    lost.add([remote(widget(name)) for name in "abc"], Removal.SILENT)
    assert names(lost) == ["b", "c"]


async def test_a_client_lists_them(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent()
    client, heard = await make_client()
    await agent.publish(widget("w", epoch=agent.info.epoch, label="x"))
    await until(lambda: heard.of(ObjectUpdated))
    await agent.heartbeat(_goodbye=True)
    await until(lambda: heard.of(AgentRemoved))
    (lost,) = client.lost_objects("widget")
    assert (lost.object["label"], lost.reason) == ("x", Removal.GOODBYE)
    assert client.lost_objects(agent=agent.info.name) == [lost]
    assert client.lost_objects(agent="somebody:else:1") == []
    agent.restart()
    await agent.heartbeat()
    await until(lambda: len(heard.of(AgentAdded)) > 1)
    assert [item.object["name"] for item in client.lost_objects()] == ["w"]


def test_finding_an_agent_again_costs_the_same_however_many_objects_of_others_are_lost() -> None:
    def prepare(count: int) -> Callable[[], object]:
        lost = LostObjects()
        for number in range(count):
            lost.add([remote(widget("w", epoch=1), agent=f"example.org:crowd:{number}")], Removal.SILENT)

        def work() -> None:
            for number in range(count):
                assert len(lost.select(None, None, f"example.org:crowd:{number}")) == 1
                lost.agent_found(f"example.org:crowd:{number}", 1)

        return work

    assert growth(prepare) < 9
