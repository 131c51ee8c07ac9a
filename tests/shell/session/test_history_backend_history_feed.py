"""Views in a session without a broker: they follow what a recorder commits."""

from __future__ import annotations

from qmf_shell.session.context import Context
from shell.recorded import Put

from qmf.console.aio import ChangeKind

NAME = ("org.example.shop", "till")


def test_a_feed_has_what_changed_since_it_was_read(past: Context, put: Put) -> None:
    put("one", (1, 10))
    put("two", (1, 20))
    feed = past.backend.follow([NAME], interval=0.0, recheck=0.0)
    assert len(feed.take().records) == 2
    assert feed.take().records == []
    put("one", (20, 30))
    put("two", (21, 20), delete=21)
    changes = feed.take()
    assert [(item.identity.index, item.values["sales"]) for item in changes.records] == [("one", 30)]
    assert [(item.key.object_name, item.kind) for item in changes.gone] == [
        ("org.example.shop:till:two", ChangeKind.LEFT)
    ]
    feed.close()


def test_a_feed_is_not_read_before_its_interval_has_passed(past: Context, put: Put) -> None:
    put("one", (1, 10))
    feed = past.backend.follow([NAME], interval=3600.0, recheck=0.0)
    assert len(feed.take().records) == 1
    put("two", (1, 20))
    assert feed.take().records == ()
    feed.close()
