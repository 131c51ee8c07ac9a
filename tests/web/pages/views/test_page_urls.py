"""Addresses of pages: what is chosen is in them, and comes back."""

from __future__ import annotations

from urllib.parse import parse_qs, parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.console.aio import ObjectId
from qmf.schema import Severity
from qmf.web.pages.views.page_urls import (
    PAGE_SIZES,
    WINDOWS,
    EventsUrl,
    GraphUrl,
    ObjectsUrl,
    PlotsUrl,
    PlottedValue,
    object_of,
    object_url,
)

names = st.text(min_size=1, max_size=20).filter(lambda text: text.strip() == text)
texts = st.text(max_size=20).filter(lambda text: text.strip() == text)
ids = st.builds(ObjectId, names, names)


def query(url: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(url).query))


@given(
    st.builds(
        ObjectsUrl,
        names,
        names,
        filter=texts,
        sort=st.sampled_from(["", "msgDepth", "msgDepth.rate"]),
        page=st.integers(1, 10**6),
        size=st.sampled_from(PAGE_SIZES),
        columns=st.lists(st.sampled_from(["a", "b", "c"]), unique=True).map(tuple),
        agent=texts,
        own=st.booleans(),
    )
)
def test_the_table_of_a_class(url: ObjectsUrl) -> None:
    parts = urlsplit(str(url)).path.split("/")
    assert parts[:2] == ["", "objects"]
    assert ObjectsUrl.parse(parts[2], parts[3], query(str(url))) == url


def test_a_descending_order() -> None:
    url = ObjectsUrl("p", "c", sort="depth", descending=True)
    assert str(url) == "/objects/p/c?sort=-depth"
    assert ObjectsUrl.parse("p", "c", query(str(url))) == url


@given(st.builds(EventsUrl, st.sampled_from(Severity), texts, texts, texts, st.booleans()))
def test_the_stream_of_events(url: EventsUrl) -> None:
    assert EventsUrl.parse(query(str(url))) == url


@given(
    st.builds(
        PlotsUrl,
        st.lists(st.builds(PlottedValue, ids, names, st.booleans()), unique=True, max_size=4).map(tuple),
        st.sampled_from(list(WINDOWS)),
        st.booleans(),
    )
)
def test_plots(url: PlotsUrl) -> None:
    split = urlsplit(str(url))
    assert PlotsUrl.parse(parse_qs(split.query).get("v", []), query(str(url))) == url


@given(st.builds(GraphUrl, ids, st.integers(1, 4)))
def test_a_graph(url: GraphUrl) -> None:
    assert GraphUrl.parse(query(str(url))) == url


@given(ids)
def test_an_object(object_id: ObjectId) -> None:
    parts = object_url(object_id).split("/")
    assert parts[:2] == ["", "object"]
    assert len(parts) == 4
    assert object_of(parts[2], parts[3]) == object_id


def test_what_cannot_be_read_is_the_default() -> None:
    assert ObjectsUrl.parse("p", "c", {"page": "-3", "size": "7", "sort": ""}) == ObjectsUrl("p", "c")
    assert ObjectsUrl.parse("p", "c", {"page": "9" * 30}) == ObjectsUrl("p", "c")
    assert EventsUrl.parse({"severity": "x"}) == EventsUrl()
    assert PlotsUrl.parse(["x", "a/b", "a/b/c/d", "a//c"], {"window": "x"}) == PlotsUrl()
    assert GraphUrl.parse({"object": "x", "depth": "99"}) == GraphUrl(None, 4)
    assert str(GraphUrl()) == "/graph"


@pytest.mark.parametrize("text", ["agent/queue~3Aorders/depth", "agent/q/depth/rate"])
def test_a_plotted_value(text: str) -> None:
    found = PlottedValue.parse(text)
    assert found is not None
    assert found.rate is text.endswith("/rate")
    assert found.name == "depth"
