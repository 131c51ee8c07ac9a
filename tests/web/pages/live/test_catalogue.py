"""The classes of the bus: put together once for each change, with numbers of objects."""

from __future__ import annotations

import pytest
from support.waiting import WAIT_LIMIT, until
from web.pages.world import World, announce, awaited

from qmf.bus import MemoryBus
from qmf.schema import parse_schema
from qmf.testing import FakeAgent
from qmf.web.pages.live.catalogue import ClassSummary

XML = b"""<schema package="org.example.other">
  <class name="Thing"><property name="name" type="sstr" access="RC" index="y"/></class>
</schema>"""


async def test_a_page_waits_for_the_count_of_a_few_agents_only(opened: World, monkeypatch: pytest.MonkeyPatch) -> None:
    site = opened.site
    await until(lambda: len(site.agents) == 1)
    monkeypatch.setattr("qmf.web.pages.live.shared_state.FEW_AGENTS", 0)
    await site.first_count(WAIT_LIMIT)
    assert site.catalogue.counted_at is None
    assert site.catalogue.is_count_due
    monkeypatch.setattr("qmf.web.pages.live.shared_state.FEW_AGENTS", 1)
    await site.first_count(WAIT_LIMIT)
    assert site.catalogue.total == 4


async def test_agents_without_a_class_are_not_asked_for_its_objects(opened: World) -> None:
    site = opened.site
    await announce(MemoryBus(opened.exchange), 3)
    await until(lambda: len(site.agents) == 4)
    before = opened.client.counts
    await site.catalogue.count()
    assert site.catalogue.total == 4
    # The others, which answer nothing, would have been waited for.
    assert opened.client.counts.expired == before.expired


async def test_classes_are_put_together_again_only_when_they_changed(opened: World) -> None:
    catalogue = opened.site.catalogue
    await catalogue.count()
    before, version = catalogue.classes(), catalogue.version
    assert catalogue.classes() is before
    assert {item.title: item.total for item in before} == {"Shelf": 3, "Store": 1, "broken": None, "sale": None}
    assert (catalogue.total, dict(catalogue.counts())) == (4, {"example.org:store:1": 4})
    other = FakeAgent(opened.exchange, parse_schema(XML, "other.xml"), name="example.org:other:1", interval=0.05)
    async with other:
        other.add("Thing", name="one")

        async def things() -> ClassSummary | None:
            return next((item for item in catalogue.classes() if item.title == "Thing"), None)

        await awaited(things, lambda found: found is not None)
        assert catalogue.version != version
        await catalogue.count()
        assert (await things()) is not None
        assert catalogue.total == 5
