"""Everything that the pages of one console share: opened once, however many browsers there are."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable

from qmf._background_tasks import BackgroundTasks
from qmf.console.aio import (
    AgentAdded,
    AgentRemoved,
    AgentRestarted,
    AgentsFound,
    BusConnected,
    ClassSeen,
    ClassUsed,
    EventRaised,
    FollowedStore,
    Missed,
    Notification,
    ObjectId,
    RemoteObject,
)
from qmf.errors import QmfError
from qmf.views.events import EventView, LostEvents, event_view
from qmf.views.internal import BROKER_PACKAGE, CONNECTION
from qmf.views.objects import ObjectView
from qmf.web.consoles import WebConsole
from qmf.web.pages.live.catalogue import Catalogue
from qmf.web.pages.live.event_log import EventLog
from qmf.web.pages.live.followed import KEPT, FollowedSelection, LiveObjects
from qmf.web.pages.live.presence import AgentPresences, BrokerState
from qmf.web.pages.live.series import SeriesStore

log = logging.getLogger("qmf.web")

#: The class of alerts that the pipeline raises.
ALERT = ("qmf.pipeline", "alert")
#: Seconds between two looks at what is no longer needed.
HOUSEKEEPING = 5.0
#: Seconds after a reconnect in which agents may announce themselves, before their objects count as gone.
RETURN = 10.0
#: Seconds after a change of the agents until classes are asked for, so that one request answers for many agents.
SETTLE = 0.3
#: So many agents can be asked for their objects while somebody waits for a page.
FEW_AGENTS = 200
#: Seconds between requests for classes that nobody announced.
REFRESH = 60.0


class SharedState:
    """The state of the bus for all pages. `start` and `close` belong to the client's loop, like all other methods."""

    def __init__(self, client: WebConsole, interval: float = 2.0) -> None:
        """Make the state, which is empty before `start`.

        Args:
            client: the console, open from `start` to `close`.
            interval: seconds between the publications of agents, and between updates of pages.
        """
        self.client = client
        self.interval = interval
        self.series = SeriesStore(time.monotonic)
        self.events = EventLog()
        self.agents = AgentPresences()
        self.catalogue = Catalogue(client)
        self.connection = BrokerState(client.url, client.connected)
        self._tasks = BackgroundTasks()
        self.followed = FollowedStore(self._follow, KEPT)
        self._unlisten: Callable[[], None] = lambda: None
        self._agents_changed = asyncio.Event()
        self._drop_stale_at: float | None = None

    def start(self, before: EventLog | None = None, wanted: Callable[[EventView], bool] | None = None) -> None:
        """Begin to listen.

        Args:
            before: has events that come first.
            wanted: says of each of them whether it does; needed with them.
        """
        if before is not None and wanted is not None:
            for item in before.since(0):
                if wanted(item.event):
                    self.events.add(item.event, item.event.timestamp / 1e9 or time.time())
        now = time.time()
        self.connection = BrokerState(self.client.url, self.client.connected)
        for agent in self.client.agents:
            self.agents.notice(AgentAdded(agent), now)
            self.catalogue.on_agent_found(agent)
        self._unlisten = self.client.listen(self._on_notification)
        self._agents_changed.set()
        self._tasks.spawn(self._remove_expired())
        self._tasks.spawn(self._keep_classes())

    async def close(self) -> None:
        """End everything; the client stays open."""
        self._unlisten()
        await self._tasks.cancel()
        await self.followed.close()

    def _follow(self, selection: FollowedSelection) -> LiveObjects:
        follow = (
            self.client.follow(selection.name, package=selection.package, interval=self.interval)
            if selection.object_id is None
            else self.client.follow(object_id=selection.object_id, interval=self.interval)
        )
        return LiveObjects(follow, self.series, self.interval, lambda: self.client.connected)

    def follow_class(self, package: str, name: str) -> tuple[LiveObjects, Callable[[], None]]:
        """The objects of a class, see `FollowedStore.lease`."""
        return self.followed.lease(FollowedSelection(package, name))

    def followed_class(self, package: str, name: str) -> LiveObjects | None:
        """The objects of a class if they are followed for some page; None if they are not."""
        return self.followed.get(FollowedSelection(package, name))

    def connection_object(self, object_id: ObjectId) -> RemoteObject | None:
        """A connection of the broker, if these are followed for some page."""
        followed = self.followed_class(BROKER_PACKAGE, CONNECTION)
        return None if followed is None else followed.get(object_id)

    def follow_object(self, object_id: ObjectId) -> tuple[LiveObjects, Callable[[], None]]:
        """One object, see `FollowedStore.lease`."""
        return self.followed.lease(FollowedSelection(object_id=object_id))

    def object(self, object_id: ObjectId) -> ObjectView | None:
        """An object that is followed, or None."""
        found = self.followed.get(FollowedSelection(object_id=object_id))
        return None if found is None else found.view(object_id)

    def drop_stale(self) -> None:
        """Remove objects that were not found again after the broker was lost."""
        for objects in self.followed:
            if objects.complete:
                objects.drop_stale()

    def count_objects(self) -> None:
        """Count the objects of all classes in the background, if the last count is old enough."""
        if self.catalogue.is_count_due:
            self._tasks.spawn(self.catalogue.count())

    async def first_count(self, seconds: float) -> None:
        """Count the objects if they never were, and wait for it, not longer than so many seconds.

        Where there are many agents, asking them takes longer than a page may: then nothing is done.
        """
        if self.catalogue.counted_at is None and len(self.agents) <= FEW_AGENTS:
            self.count_objects()
            end = time.monotonic() + seconds
            while self.catalogue.counted_at is None and time.monotonic() < end:  # noqa: ASYNC110 - seldom, and short
                await asyncio.sleep(0.02)

    def _on_notification(self, item: Notification) -> None:
        now = time.time()
        self.agents.notice(item, now)
        match item:
            case EventRaised(event=event):
                self.events.add(event_view(event), now)
            case Missed(agent=agent) if item.of_events:
                self.events.add(LostEvents(agent.name, item.lost_events, time.time_ns()), now)
            case ClassSeen():
                self.catalogue.on_changed()
                self._agents_changed.set()
            case ClassUsed(class_key=key, agent=agent):
                self.catalogue.add_user(key, agent.name)
            case AgentRemoved(agent=agent):
                self.catalogue.forget(agent.name)
            case AgentAdded() | AgentRestarted() | AgentsFound():
                self._agents_changed.set()
            case BusConnected():
                self._drop_stale_at = time.monotonic() + RETURN
        self.connection = self.connection.after(item, now)

    async def _remove_expired(self) -> None:
        while True:
            await asyncio.sleep(HOUSEKEEPING)
            self.series.expire()
            due = self._drop_stale_at
            if due is not None and time.monotonic() >= due and self.client.connected:
                self._drop_stale_at = None
                self.agents.drop_cut(time.time())
                self.drop_stale()

    async def _keep_classes(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(REFRESH):
                    await self._agents_changed.wait()
            await asyncio.sleep(SETTLE)
            self._agents_changed.clear()
            try:
                await self.catalogue.refresh()
            except QmfError as error:
                log.info("classes could not be listed: %s", error)
