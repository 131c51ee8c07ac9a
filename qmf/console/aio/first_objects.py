"""The first objects that agents have, for requests with a limit.

Agents of this project send no more than the first ones; of others the console keeps no more. If agents may be asked in
turn, they are asked until there are enough: a few at first, then more and more at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence

import attrs

from qmf.console.aio.agents import Agent
from qmf.console.aio.answers import Answers, check_failures
from qmf.console.aio.objects.object_query import ObjectQuery, Test, match_all
from qmf.console.aio.objects.remote_object import RemoteObject
from qmf.errors import QmfError
from qmf.protocol import OrderKey, place_of
from qmf.protocol.ordering import Place

#: Agents that are asked at once when they are asked in turn, at first; then each time as many as were asked before.
AGENTS_AT_FIRST = 64


@attrs.frozen
class AgentAnswer:
    """What one agent answered to a query.

    Attributes:
        objects: those that it sent, or the first of them.
        matched: how many match in all; None if that is not known.
    """

    objects: Sequence[RemoteObject] = ()
    matched: int | None = 0


async def first_objects(
    query: ObjectQuery, agents: Sequence[Agent], ask: Callable[[Agent], Awaitable[AgentAnswer]], test: Test
) -> Answers[RemoteObject]:
    """The first objects of some agents.

    Args:
        query: which, with a limit.
        ask: asks one for its first ones, or for all if the console has to test them.
        test: what the console tests objects by.

    Raises:
        QmfError: all failed that were asked.
    """
    first = _First(query, test)
    asked = 0
    for some in _rounds(sorted(agents, key=lambda agent: agent.name)) if query.in_turn else iter([agents]):
        for agent, answer in zip(some, await _ask_all(some, ask), strict=True):
            if isinstance(answer, QmfError):
                first.failures[agent.name] = answer
            else:
                first.add(answer)
        asked += len(some)
        if first.are_enough:
            break
    check_failures(first.failures, asked)
    return first.answers(complete=asked == len(agents))


class _First:
    """The first objects of the agents that have answered."""

    def __init__(self, query: ObjectQuery, test: Test) -> None:
        self.failures: dict[str, QmfError] = {}
        self._query = query
        self._limit = query.limit or 0
        self._test = None if test is match_all else test
        self._found: list[RemoteObject] = []
        self._matched: int | None = 0

    @property
    def are_enough(self) -> bool:
        return len(self._found) >= self._limit

    def add(self, answer: AgentAnswer) -> None:
        objects, matched = answer.objects, answer.matched
        if self._test is not None:
            objects = list(filter(self._test, objects))
            matched = len(objects)
        self._matched = None if self._matched is None or matched is None else self._matched + matched
        self._found += _in_order(self._query, objects)[: self._limit] if self._query.in_turn else objects

    def answers(self, *, complete: bool) -> Answers[RemoteObject]:
        objects = self._found if self._query.in_turn else _in_order(self._query, self._found)
        return Answers(tuple(objects[: self._limit]), self.failures, self._matched if complete else None)


async def _ask_all(
    agents: Sequence[Agent], ask: Callable[[Agent], Awaitable[AgentAnswer]]
) -> list[AgentAnswer | QmfError]:
    answers = await asyncio.gather(*(ask(agent) for agent in agents), return_exceptions=True)
    found: list[AgentAnswer | QmfError] = []
    for answer in answers:
        if isinstance(answer, BaseException) and not isinstance(answer, QmfError):
            raise answer
        found.append(answer)
    return found


def _rounds(agents: Sequence[Agent]) -> Iterator[Sequence[Agent]]:
    first, size = 0, AGENTS_AT_FIRST
    while first < len(agents):
        yield agents[first : first + size]
        first, size = first + size, max(size, first + size)


def _in_order(query: ObjectQuery, objects: Sequence[RemoteObject]) -> Sequence[RemoteObject]:
    if not query.order:
        return objects

    def place(obj: RemoteObject) -> Place:
        values = obj.data.values
        return place_of(
            query.order, lambda name: obj.object_id.object_name if name == OrderKey.OBJECT_NAME else values.get(name)
        )

    return sorted(objects, key=place)
