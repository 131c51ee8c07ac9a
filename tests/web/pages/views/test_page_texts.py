"""Texts of values."""

from __future__ import annotations

from qmf.console.aio import ObjectId
from qmf.views.names import reference_text
from qmf.web.pages.views.page_texts import age_text, plain_text

AGENT = "example.org:store:1"
SHELF = ObjectId("org.example.store:shelf:a/1", AGENT)


def test_texts_of_values() -> None:
    assert plain_text({"a": 1}) == '{"a": 1}'
    assert plain_text(b"\x01\xff") == "01 ff"
    assert plain_text("line\nbreak") == "line\\nbreak"
    assert reference_text("p:queue:orders") == "queue orders"
    assert reference_text("0-1-2-3") == "0-1-2-3"
    assert [age_text(seconds) for seconds in (0.2, 5.9, 3700)] == ["now", "5s", "1h 1m"]
