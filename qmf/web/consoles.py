"""What routes and pages use of a console: the server's own one, or one that shows what a caller may read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from types import TracebackType
from typing import Protocol, Self, Unpack

from qmf.console.aio import (
    Agent,
    Answers,
    AnySchema,
    FollowMode,
    Listener,
    ObjectChange,
    ObjectId,
    RemoteObject,
    StillFindingAgents,
)
from qmf.console.aio.objects.object_query import ListQueryArguments, QueryArguments
from qmf.errors import QmfError
from qmf.schema import ClassKey


class ObjectFollow(Protocol):
    """Objects and their changes; see `qmf.console.aio.Follow`."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[RemoteObject]: ...

    def get(self, object_id: ObjectId, /) -> RemoteObject | None:
        """An object, or None."""

    @property
    def sources(self) -> Mapping[str, FollowMode]:
        """How each agent is followed, by name."""

    @property
    def answered(self) -> bool:
        """True once all agents have answered, or failed to."""

    @property
    def failures(self) -> Mapping[str, QmfError]:
        """The errors of agents, by name."""

    async def close(self) -> None:
        """End it."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...

    def __aiter__(self) -> AsyncIterator[ObjectChange[RemoteObject]]: ...

    async def __anext__(self) -> ObjectChange[RemoteObject]: ...


class WebConsole(Protocol):
    """A console; see `qmf.console.aio.Client`, whose methods these are."""

    @property
    def url(self) -> str:
        """Where the bus is."""

    @property
    def connected(self) -> bool:
        """True while requests can be sent."""

    @property
    def agents(self) -> list[Agent]:
        """The agents present."""

    @property
    def broker(self) -> Agent | None:
        """The agent of the connected broker."""

    @property
    def finding_agents(self) -> StillFindingAgents | None:
        """How far the search for agents is."""

    def known_classes(self, package: str | None = None, *, agent: str | None = None) -> list[ClassKey]:
        """Classes seen so far."""

    def known_schema(self, class_key: ClassKey, /) -> AnySchema | None:
        """A schema that was fetched already."""

    def agent(self, name: str, /) -> Agent:
        """An agent by name."""

    async def packages(self, timeout: float | None = None) -> Answers[str]:
        """The packages of all agents."""

    async def classes(
        self, package: str | None = None, timeout: float | None = None, *, agent: str | Agent | None = None
    ) -> Answers[ClassKey]:
        """The classes of agents."""

    async def schema(self, class_key: ClassKey, /) -> AnySchema:
        """A schema."""

    async def objects(
        self, name: str | None = None, *, timeout: float | None = None, **selection: Unpack[ListQueryArguments]
    ) -> Answers[RemoteObject]:
        """Objects. With a limit there may be more of them, in no order."""

    def follow(
        self, name: str | None = None, *, interval: float = 5.0, **selection: Unpack[QueryArguments]
    ) -> ObjectFollow:
        """Follow objects."""

    def listen(self, listener: Listener, /) -> Callable[[], None]:
        """Call a listener with each notification."""
