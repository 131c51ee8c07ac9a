"""The agents that are present."""

from __future__ import annotations

import attrs
from qmf_shell.session.agent_table import AgentTable
from shell.fakes import agent


class CountedName(str):
    """A name that counts how often it is compared for order."""

    comparisons = 0
    __slots__ = ()

    def __lt__(self, other: str) -> bool:
        CountedName.comparisons += 1
        return str.__lt__(self, other)


def names(table: AgentTable) -> list[str]:
    return [item.instance for item in table.agents()]


def test_agents_come_change_and_go() -> None:
    table = AgentTable()
    table.replace([agent("a:b:2"), agent("a:b:1")])
    table.put(agent("a:b:0"))
    assert names(table) == ["0", "1", "2"]
    table.on_heartbeat("a:b:1", 77)
    table.on_heartbeat("a:b:later", 88)
    assert [item.seen for item in table.agents()] == [0, 77, 0]
    table.put(agent("a:b:later"))
    assert table.agents()[-1].seen == 88
    table.remove("a:b:2")
    table.remove("a:b:2")
    assert names(table) == ["0", "1", "later"]
    assert table.has("a:b:1", 1)
    assert not table.has("a:b:1", 2)
    assert not table.has("a:b:2", 1)


def test_adding_agents_sorts_nothing_until_they_are_read() -> None:
    def comparisons(count: int) -> int:
        table = AgentTable()
        CountedName.comparisons = 0
        for number in range(count):
            made = agent(f"a:b:{number * 7919 % count:05}")
            table.put(attrs.evolve(made, name=CountedName(made.name)))
        assert CountedName.comparisons == 0
        assert [item.name for item in table.agents()] == sorted(item.name for item in table.agents())
        CountedName.comparisons = 0
        table.agents()
        assert CountedName.comparisons == 0
        table.put(agent("a:b:new"))
        table.agents()
        return CountedName.comparisons

    # Reading sorts once: so many times as many agents, little more than so many times as many comparisons.
    assert comparisons(4000) < 20 * comparisons(400)
