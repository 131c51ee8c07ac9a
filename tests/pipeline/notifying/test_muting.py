"""Alerts that mute others."""

from __future__ import annotations

import attrs
from pipeline.notifying.labelled import alert

from qmf.pipeline.notifying.matchers import parse_matchers
from qmf.pipeline.notifying.muting import Inhibitor, InhibitRule

DEAD = InhibitRule(
    source=parse_matchers(["alertname=dead"]), target=parse_matchers(["severity=~warn|error"]), equal=("agent",)
)


def test_inhibition() -> None:
    dead = alert("1", alertname="dead", agent="a", severity="crit")
    inhibitor = Inhibitor([DEAD], [dead])
    assert inhibitor.source_of(alert("2", alertname="full", agent="a", severity="warn")) is dead
    assert inhibitor.source_of(alert("3", alertname="full", agent="b", severity="warn")) is None
    assert inhibitor.source_of(alert("4", alertname="full", agent="a", severity="crit")) is None
    assert inhibitor.source_of(dead) is None


def test_only_what_fires_inhibits() -> None:
    over = alert("1", 0, 5, alertname="dead", agent="a")
    pending = attrs.evolve(alert("2", alertname="dead", agent="a"), pending=True)
    inhibitor = Inhibitor([DEAD], [over, pending])
    assert inhibitor.source_of(alert("3", alertname="full", agent="a", severity="warn")) is None


def test_alerts_on_both_sides_do_not_inhibit_each_other() -> None:
    both = InhibitRule(source=parse_matchers(["a=1"]), target=parse_matchers(["a=1"]))
    one, two = alert("1", a="1"), alert("2", a="1")
    assert Inhibitor([both], [one, two]).source_of(two) is None
    wider = InhibitRule(source=parse_matchers(["a=1"]), target=())
    assert Inhibitor([wider], [one, two]).source_of(two) is None
    assert Inhibitor([wider], [one, two]).source_of(alert("3")) is one


def test_a_label_that_both_lack_is_equal() -> None:
    rule = InhibitRule(source=parse_matchers(["s=1"]), target=parse_matchers(["t=1"]), equal=("zone",))
    source = alert("1", s="1")
    assert Inhibitor([rule], [source]).source_of(alert("2", t="1")) is source
    assert Inhibitor([rule], [source]).source_of(alert("2", t="1", zone="x")) is None
