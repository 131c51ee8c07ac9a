"""What pages show to those who may read a part: the same parts, over a console that withholds the rest."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator

import attrs
from support.secret_store import RULES, SecretStore, secret_store
from support.waiting import until
from web.pages.world import awaited

from qmf.acl.reader import read
from qmf.acl.words import WEB
from qmf.bus import MemoryBus, MemoryExchange
from qmf.console.aio import Client, ObjectId
from qmf.web.access.read_rights import ReadRights
from qmf.web.pages.live.references import References, find_object
from qmf.web.pages.mounting import PageState
from qmf.web.pages.views.event_view import event_rows
from qmf.web.pages.views.graph import bus_graph
from qmf.web.pages.views.overview import agent_rows, broker_rows, overview
from qmf.web.pages.views.page_urls import EventsUrl, ObjectsUrl
from qmf.web.readers.readable_console import ReadableConsole

PACKAGE, AGENT = "org.example.store", "example.org:store:1"


@attrs.frozen
class Sites:
    """What everybody sees, and what a reader sees."""

    agents: SecretStore
    whole: PageState
    part: PageState


@contextlib.asynccontextmanager
async def sites(rules: str = RULES) -> AsyncIterator[Sites]:
    exchange = MemoryExchange()
    async with secret_store(exchange) as agents, Client(MemoryBus(exchange), data=False, discover=True) as client:
        whole = PageState.on(client, 0.05)
        whole.state.start()
        agents.sell()
        await until(lambda: len(client.known_classes()) == 7 and whole.state.events.total == 4)
        rights = ReadRights(read(rules, "rules", vocabulary=WEB), "bob@QPID")
        part = whole.for_reader(ReadableConsole(client, rights))
        try:
            for site in (whole, part):
                await site.state.catalogue.refresh()
                await site.state.catalogue.count()
            yield Sites(agents, whole, part)
        finally:
            await part.close()
            await whole.close()


async def test_counts_classes_agents_and_events() -> None:
    async with sites() as here:
        now = time.time()
        whole, part = (overview(site.state, now) for site in (here.whole, here.part))
        assert (whole.all_agents, whole.objects, whole.classes, whole.event_classes, whole.packages) == (2, 8, 4, 3, 2)
        assert (part.all_agents, part.objects, part.classes, part.event_classes, part.packages) == (1, 3, 1, 1, 1)
        assert (whole.events_last_hour, part.events_last_hour) == (4, 1)
        site = here.part.state
        assert [item.title for item in site.catalogue.classes()] == ["Shelf", "sale"]
        assert site.catalogue.find("org.secret.vault", "vault") is None
        assert site.catalogue.versions("org.secret.vault", "shelf") == []
        [row] = agent_rows(site, site.agents.names(), now)
        assert (row.key, row.cells[4].text) == (AGENT, "3")
        assert [row.cells[-1].text for row in broker_rows(site, [], now)] == ["–"]
        assert {node.label for node in bus_graph(site).nodes} == {AGENT, "Shelf (3)"}
        shown = event_rows(site.events.newest_first(), EventsUrl())
        assert len(shown) == 1
        assert "secret" not in str(shown).lower()
        here.agents.sell()
        await until(lambda: here.whole.state.events.total == 8)
        assert site.events.total == 2


async def test_tables_filters_and_objects() -> None:
    async with sites() as here:
        site = here.part.state
        objects, release = site.follow_class(PACKAGE, "shelf")
        await until(lambda: objects.complete and len(objects) == 3)
        table = here.part.tables.of(PACKAGE, "shelf", objects)
        for text, total in (("", 3), ("secret", 0), ("storeRef=secret", 0), ("sold>5", 3)):
            page = await table.page(ObjectsUrl(PACKAGE, "shelf", filter=text))
            assert (page.total, page.all_objects) == (total, 3), text
            assert "secret" not in str(page).lower().replace(text, "")
        release()
        hidden = ObjectId(f"{PACKAGE}:shelf:secret/0", AGENT)
        found, release = site.follow_object(hidden)
        await until(lambda: found.complete)
        assert (len(found), found.current, dict(found.failures)) == (0, None, {})
        release()
        assert await find_object(site, hidden) is None
        obj = await find_object(site, ObjectId(f"{PACKAGE}:shelf:a/1", AGENT))
        assert obj is not None
        assert obj.values.get("storeRef") is None
        finder = References(site)
        assert await awaited(lambda: finder.to(obj), lambda _: finder.complete) == []
        finder.close()


async def test_changes_of_what_is_withheld_are_not_noticed() -> None:
    async with sites() as here:
        site = here.part.state
        objects, release = site.follow_class(PACKAGE, "shelf")
        everything, release_everything = here.whole.state.follow_class(PACKAGE, "shelf")
        await until(lambda: objects.complete and everything.complete and len(everything) == 5)
        await until(lambda: len(objects) == 3)
        version = objects.version
        here.agents.store.add("Shelf", name="secret/2", limit=1, built=1)
        await until(lambda: len(everything) == 6)
        assert (len(objects), objects.version) == (3, version)
        here.agents.store.add("Shelf", name="a/3", limit=1, built=1)
        await until(lambda: len(objects) == 4)
        release()
        release_everything()
        await here.agents.vault.close()
        await until(lambda: overview(here.whole.state, time.time()).gone == 1)
        assert overview(site, time.time()).gone == 0


async def test_who_may_read_nothing_sees_nothing() -> None:
    async with sites("acl deny all all\n") as here:
        now, site = time.time(), here.part.state
        shown = overview(site, now)
        assert (shown.all_agents, shown.objects, shown.classes, shown.event_classes, shown.packages) == (0,) * 5
        assert shown.events_last_hour == 0
        assert agent_rows(site, site.agents.names(), now) == []
        assert list(bus_graph(site).nodes) == []
        assert list(event_rows(site.events.newest_first(), EventsUrl())) == []
        objects, release = site.follow_class(PACKAGE, "shelf")
        await until(lambda: objects.complete)
        assert len(objects) == 0
        page = await here.part.tables.of(PACKAGE, "shelf", objects).page(ObjectsUrl(PACKAGE, "shelf"))
        assert (page.total, page.all_objects) == (0, 0)
        release()
        assert await find_object(site, ObjectId(f"{PACKAGE}:shelf:a/1", AGENT)) is None
