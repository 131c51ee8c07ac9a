"""What the routes of REST management stand on: events, streams of changes, jobs, pages of objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from qmf.console.aio import Agent, Answers, AnySchema, ObjectId, RemoteObject
from qmf.errors import NotFoundError
from qmf.schema import ClassKey, ClassSchema, Kind
from qmf.web.consoles import WebConsole
from qmf.web.management.change_feeds import ChangeFeeds
from qmf.web.management.event_feed import EventFeed
from qmf.web.management.object_writer import JsonObjectWriter
from qmf.web.management.ordering import ObjectOrdering
from qmf.web.management.paging import ResultPage, ResultPages
from qmf.web.management.selection import ClassSelection, check_names
from qmf.web.services import WebServices
from qmf.web.sharing import SharedWork


class Management:
    """The parts. Belongs to the event loop.

    Attributes:
        services: of the server.
        client: the console of those who use it.
        events: those received since the server was opened.
        changes: streams of changes of objects.
        writer: makes JSON of objects.
        pages: answers of agents that are read page by page.
        lists: pages that many ask for at once.
    """

    def __init__(self, services: WebServices, client: WebConsole | None = None) -> None:
        """Make the parts; `client`: the console; None for the server's own one."""
        self.services = services
        self.client: WebConsole = client or services.client
        self.events = EventFeed(self.client, services.limits.history)
        self.writer = JsonObjectWriter()
        self.changes = ChangeFeeds(self.client, self.writer, services.limits.history)
        self.pages = ResultPages()
        self.lists: SharedWork[tuple[Sequence[bytes], str | None]] = SharedWork()

    async def close(self) -> None:
        """End the streams."""
        self.events.close()
        await self.changes.close()
        await self.lists.close()

    def agent(self, name: str) -> Agent:
        """An agent by name.

        Raises:
            NotFoundError: not present.
        """
        return self.client.agent(name)

    async def object(self, agent: str, name: str, timeout: float | None = None) -> RemoteObject:
        """An object by its agent and name, as the agent sends it now.

        Raises:
            NotFoundError: there is no such agent or object.
            QmfError: the agent did not answer.
        """
        owner = self.agent(agent)
        object_id = ObjectId(name, owner.name)
        found = await self.client.objects(object_id=object_id, agent=owner, timeout=timeout)
        if not found:
            raise NotFoundError(f"object of agent {owner.name}", name)
        return found[0]

    async def schema(self, package: str, name: str, hash: UUID | None) -> AnySchema:
        """The schema of a class or event by name; of several versions the one seen last, or that with the hash.

        Raises:
            NotFoundError: there is none.
        """
        keys = self._keys_of(package, name, hash)
        if not keys:
            await self.client.classes(package)
            keys = self._keys_of(package, name, hash)
        if not keys:
            known = [key.name for key in self.client.known_classes(package)]
            raise NotFoundError(f"class of package {package}", name, known)
        return await self.client.schema(keys[-1])

    async def page(
        self,
        chosen: ClassSelection,
        arguments: Mapping[str, Any],
        cursor: str | None,
        limit: int,
        order: ObjectOrdering,
        timeout: float | None,
    ) -> ResultPage:
        """A page of the objects of a class; see `ResultPages.page`.

        Args:
            chosen: the objects.
            arguments: those of `Client.objects` for it.
            cursor, limit, order: as of `ResultPages.page`.
            timeout: seconds to wait for each agent; None for the server's.
        """
        # Other agents send everything, which is worth keeping; so does a console that shows what a caller may read.
        ours = self.client is self.services.client
        ours = ours and all(agent.supports_subscriptions for agent in self.client.agents)
        if ours and cursor is None and order.fields and not self._known_schemas(chosen):
            await self.client.objects(**arguments, timeout=timeout, limit=1)  # for its schema
        keys = order.of_agents(self._known_schemas(chosen)) if ours else None

        async def ask() -> Answers[RemoteObject]:
            return await self.client.objects(**arguments, timeout=timeout)

        async def ask_first() -> Answers[RemoteObject]:
            # Without fields the order is that of agents, who are asked one after the other then.
            in_turn = not order.fields
            return await self.client.objects(
                **arguments, timeout=timeout, limit=limit, order=keys or (), in_turn=in_turn
            )

        return await self.pages.page(chosen, ask, cursor, limit, order, None if keys is None else ask_first)

    def _known_schemas(self, chosen: ClassSelection) -> Sequence[ClassSchema]:
        keys = self.client.known_classes(chosen.package)
        named = (key for key in keys if key.kind is Kind.DATA and key.name.lower() == chosen.name.lower())
        schemas = (self.client.known_schema(key) for key in named)
        return [schema for schema in schemas if isinstance(schema, ClassSchema)]

    async def check(self, chosen: ClassSelection, fields: Sequence[str]) -> None:
        """Refuse a class, or values, that the agents present don't have: for a list without objects.

        Raises:
            NotFoundError: there is no such class or value.
            QmfError: no agent answered.
        """
        found = await self.client.classes(chosen.package, agent=chosen.agent)
        if found.failures:
            return  # who does not answer may have it
        classes = [key for key in found if key.kind is Kind.DATA]
        keys = [key for key in classes if key.name.lower() == chosen.name.lower()]
        if not keys:
            raise NotFoundError("class", chosen.name, {key.name for key in classes})
        if fields:
            schemas = [await self.client.schema(key) for key in keys]
            check_names([item for item in schemas if isinstance(item, ClassSchema)], fields)

    def _keys_of(self, package: str, name: str, hash: UUID | None) -> Sequence[ClassKey]:
        found = [key for key in self.client.known_classes(package) if _is(key, name) and hash in (None, key.hash)]
        # An exact name goes before one in another case: events may differ from classes in nothing else.
        return sorted(found, key=lambda key: (key.name == name, key.kind is Kind.DATA, key.hash is not None))


def _is(key: ClassKey, name: str) -> bool:
    return key.name == name or (key.kind is Kind.DATA and key.name.lower() == name.lower())
