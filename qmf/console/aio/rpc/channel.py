"""Asking one agent, or the broker's QMFv1 side, one question."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from qmf.bus.base import OutcomeCallback
from qmf.console.aio.agents.registry import Agent
from qmf.console.aio.rpc.requests import PendingRequests
from qmf.console.aio.wire import Target, Wire
from qmf.errors import LinkError, ProtocolError
from qmf.protocol import Content, Frame, QueryRequest

C = TypeVar("C")


class RpcChannel:
    """Sends requests over a wire and gives back their answers."""

    def __init__(self, wire: Wire, requests: PendingRequests) -> None:
        self._wire = wire
        self._requests = requests
        self._one_by_one = asyncio.Lock()

    def address(self, agent: Agent) -> Target:
        """Where an agent takes requests: under the subject that it advertises, else under its name (QMF2.md 4.4)."""
        if agent.info.direct_subject:
            return Target(self._wire.topic, agent.info.direct_subject)
        return Target(self._wire.direct, agent.name)

    async def ask(self, agent: Agent, content: Content, expect: type[C], *, what: str, timeout: float) -> list[C]:
        """Ask an agent.

        Args:
            agent: whom.
            content: the request.
            expect: what the parts of the answer must be.
            what: what is asked, for messages.
            timeout: seconds to wait.

        Returns:
            the parts of the answer.

        Raises:
            ProtocolError: the answer is one to another kind of question.
            RequestTimeout, NetworkError, AgentLost, RemoteError: see `PendingRequests.ask`.
        """
        target = self.address(agent)

        def post(number: int, told: OutcomeCallback) -> bool:
            return self._wire.post(content, target, str(number), told)

        asked_again = isinstance(content, QueryRequest)

        async def once() -> list[object]:
            return await self._requests.ask(
                lambda number: self._wire.send(content, target, str(number)),
                what=what,
                agent=agent.name,
                timeout=timeout,
                post=None if asked_again else post,
            )

        parts = await (self._again(once) if asked_again else once())
        return [_expected(part, expect, what, agent.name) for part in parts]

    async def ask_v1(
        self, build: Callable[[int], Frame], expect: type[C], *, agent: Agent, what: str, timeout: float
    ) -> list[C]:
        """Ask by QMFv1.

        Args:
            build: makes the request for a sequence number.
            expect: which frames of the answer are wanted.
            agent: whom; a qpidd that we are connected to takes QMFv1 under an address of its own.
            what: what is asked, for messages.
            timeout: seconds to wait.

        Returns:
            the wanted frames of the answer.

        Raises:
            RequestTimeout, NetworkError, AgentLost, RemoteError: see `PendingRequests.ask`.
        """
        target = self._wire.v1_broker if agent.is_broker and agent.is_qpidd else self.address(agent)
        parts = await self._again(
            lambda: self._requests.ask(
                lambda number: self._wire.send_v1(build(number), target), what=what, agent=agent.name, timeout=timeout
            )
        )
        return [part for part in parts if isinstance(part, expect)]

    async def _again(self, ask: Callable[[], Awaitable[list[object]]]) -> list[object]:
        """Ask; if the broker closes the sending link meanwhile, ask once more.

        qpidd answers a forbidden request by closing the link, which takes along the innocent ones behind it
        (QMF2.md 7.2), and nothing tells them apart. So all are asked again, one at a time: the forbidden one is refused
        again. Only for questions that change nothing at the agent.
        """
        try:
            return await ask()
        except LinkError:
            async with self._one_by_one:
                return await ask()


def _expected(part: object, expect: type[C], what: str, agent: str) -> C:
    if isinstance(part, expect):
        return part
    raise ProtocolError(f"agent {agent} answered {what} with {type(part).__name__}")
