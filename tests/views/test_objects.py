"""The view of an object: how it is named, and its values, which are converted when they are read."""

from __future__ import annotations

import pytest
from shell.fakes import filesystem
from web.pages.world import world

from qmf.protocol import ObjectId
from qmf.views.objects import SINGLE_READS, ObjectKey, ObjectView, ViewValues, key_of_reference, object_view

AGENT = "example.org:store:1"


async def test_the_view_of_an_object() -> None:
    async with world(shelves=2) as opened:
        shelf = await opened.shelf(1)
        view = object_view(shelf, name="amqp://mq1")
    identity = view.identity
    assert (identity.index, identity.title, identity.class_key) == ("a/1", "", shelf.class_key)
    assert identity.key == ObjectKey("org.example.store:shelf:a/1", AGENT)
    assert (view.schema, view.handle, view.broker) == (shelf.schema, shelf, "amqp://mq1")
    assert (view.updated, view.created, view.deleted) == (shelf.timestamps.update, shelf.timestamps.create, 0)
    assert dict(view.values) == {**shelf.typed_values, "storeRef": ObjectKey("org.example.store:store:main", AGENT)}
    assert set(view.names) == {"a/1", "org.example.store:shelf:a/1"}


async def test_values_are_the_same_one_by_one_and_together() -> None:
    async with world(shelves=1) as opened:
        shelf = await opened.shelf(0)
        names = list(shelf.typed_values)
        one_by_one, together = ViewValues(shelf, "mq1"), ViewValues(shelf, "mq1")
    assert len(names) > SINGLE_READS
    assert len(one_by_one) == len(names)
    assert {name: one_by_one[name] for name in names} == dict(together)
    assert together["storeRef"] == ObjectKey("org.example.store:store:main", AGENT, broker="mq1")
    assert "nothing" not in one_by_one
    for values in (ViewValues(shelf, ""), together):
        with pytest.raises(KeyError):
            values["nothing"]


def test_references_have_the_agent_of_their_owner_unless_they_name_one() -> None:
    assert key_of_reference(ObjectId("x"), AGENT, "mq1") == ObjectKey("x", AGENT, broker="mq1")
    assert key_of_reference(ObjectId("x", "other", 5), AGENT) == ObjectKey("x", "other")
    assert key_of_reference("x", AGENT) == "x"


def test_names_in_events_include_the_property_name() -> None:
    view: ObjectView = filesystem("/home", values={"name": "home"})
    assert set(view.names) == {"/home", view.identity.key.object_name, "home"}
