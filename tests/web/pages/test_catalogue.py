"""The classes of the bus: put together once for each change, with numbers of objects."""

from __future__ import annotations

from web.pages.world import World, awaited

from qmf.schema import parse_schema
from qmf.testing import FakeAgent
from qmf.web.pages.live.catalogue import ClassSummary

XML = b"""<schema package="org.example.other">
  <class name="Thing"><property name="name" type="sstr" access="RC" index="y"/></class>
</schema>"""


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
