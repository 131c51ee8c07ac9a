"""What notifications have of several alerts: pairs in common, the newest incidents."""

from __future__ import annotations

from pipeline.notifying.labelled import alert

from qmf.pipeline.notifying.notification import common_pairs, newest


def test_common_pairs() -> None:
    assert common_pairs([]) == {}
    assert common_pairs([{"a": "1", "b": "2"}, {"b": "2", "a": "1", "c": "3"}, {"a": "1", "b": "3"}]) == {"a": "1"}


def test_the_newest_incident_of_each_set_of_labels() -> None:
    first, second, other = alert("1", 5, 6, a="x"), alert("2", 7, a="x"), alert("3", 1, a="y")
    assert newest([second, first, other]) == [other, second]
