"""`Managements`: what the routes of REST management stand on, for each caller by what it may read."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import attrs
from starlette.requests import HTTPConnection

from qmf.console.aio import RemoteObject
from qmf.errors import NotFoundError
from qmf.web.access.rules import called_object
from qmf.web.management.event_feed import is_readable
from qmf.web.management.jobs import Jobs
from qmf.web.management.management import Management
from qmf.web.readers.readable_console import ReadableConsole
from qmf.web.readers.readers import PerReader
from qmf.web.scopes import Caller, Scope
from qmf.web.services import WebServices


@attrs.frozen
class ReadingCaller:
    """Who asks, and what that caller may read.

    Attributes:
        caller: who.
        management: stands on the caller's console.
    """

    caller: Caller
    management: Management


class Managements:
    """The parts for all callers. Belongs to the event loop.

    Attributes:
        services: of the server.
        jobs: method calls that nobody waits for.
    """

    def __init__(self, services: WebServices) -> None:
        self.services = services
        self.jobs = Jobs(services.limits.jobs)
        self._whole = Management(services)
        self._readers = PerReader(services.readers, self._whole, self._make, Management.close)

    @contextlib.asynccontextmanager
    async def run(self, _app: object = None) -> AsyncIterator[None]:
        """Record events until the end of the block; streams and jobs end with it."""
        self._whole.events.open()
        try:
            yield
        finally:
            await self.services.readers.close()
            await self._whole.close()
            await self.jobs.close()

    def of(self, caller: Caller) -> Management:
        """That of a caller."""
        return self._readers.of(self.services.readers.console_of(caller))

    def require(self, *scopes: Scope) -> Callable[[HTTPConnection], Awaitable[ReadingCaller]]:
        """A dependency of FastAPI's routes: see `WebAccess.require`."""
        access = self.services.access

        async def dependency(connection: HTTPConnection) -> ReadingCaller:
            caller = access.check(connection, *scopes)
            return ReadingCaller(caller, self.of(caller))

        return dependency

    async def acted_on(
        self, reader: ReadingCaller, method: str, agent: str, name: str, timeout: float | None
    ) -> RemoteObject:
        """An object whose method a caller wants to call: one that it may read, or whose method it may call.

        Raises:
            NotFoundError: there is no such agent or object, as far as the caller may know.
            QmfError: the agent did not answer.
        """
        try:
            return await reader.management.object(agent, name, timeout)
        except NotFoundError:
            if reader.management is self._whole:
                raise
            found = await self._find(agent, name, timeout)
            if found is None or self.services.access.rules.refusal(reader.caller, method, called_object(found)):
                raise
            return found

    def readable(self, reader: ReadingCaller, obj: RemoteObject) -> RemoteObject | None:
        """An object as a caller may read it; None if it may not."""
        if not reader.caller.may(Scope.READ):
            return None
        console = reader.management.client
        return console.readable(obj) if isinstance(console, ReadableConsole) else obj

    async def _find(self, agent: str, name: str, timeout: float | None) -> RemoteObject | None:
        with contextlib.suppress(NotFoundError):
            return await self._whole.object(agent, name, timeout)
        return None

    def _make(self, console: ReadableConsole) -> Management:
        made = Management(self.services, console)
        made.events.open(self._whole.events.log, lambda data: is_readable(console, data))
        return made
