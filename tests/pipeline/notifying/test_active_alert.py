"""Active alerts: fingerprints, pairs in common, incidents."""

from __future__ import annotations

import attrs
from pipeline.notifying.labelled import alert

from qmf.pipeline.correlate.alerts import Alert, AlertState
from qmf.pipeline.notifying.active_alert import ActiveAlert, common_pairs, fingerprint, newest
from qmf.schema import Severity


def test_fingerprints_are_those_of_alertmanager() -> None:
    # As Alertmanager 0.25 told its webhook.
    recorded = {"alertname": "disk-full", "severity": "crit", "agent": "qmf:host:box", "subject": 'ä "quoted"'}
    assert fingerprint(recorded) == "782a1b495c8fb507"
    assert fingerprint({}) == "cbf29ce484222325"
    assert fingerprint({"b": "2", "a": "1"}) == fingerprint({"a": "1", "b": "2"}) != fingerprint({"a": "12", "b": ""})


def test_common_pairs() -> None:
    assert common_pairs([]) == {}
    assert common_pairs([{"a": "1", "b": "2"}, {"b": "2", "a": "1", "c": "3"}, {"a": "1", "b": "3"}]) == {"a": "1"}


def test_the_newest_incident_of_each_set_of_labels() -> None:
    first, second, other = alert("1", 5, 6, a="x"), alert("2", 7, a="x"), alert("3", 1, a="y")
    assert newest([second, first, other]) == [other, second]


def test_an_alert_of_the_rules() -> None:
    of = Alert(
        fingerprint="f", incident="i", name="full", labels={"alertname": "full", "agent": "a"},
        annotations={"summary": "text"}, severity=Severity.CRIT, state=AlertState.PENDING, starts_at=5,
    )  # fmt: skip
    pending = ActiveAlert.from_alert(of)
    assert (pending.id, pending.state, pending.name, pending.summary) == ("i crit", AlertState.PENDING, "full", "text")
    assert pending.labels == {"alertname": "full", "agent": "a", "severity": "crit"}
    resolved = ActiveAlert.from_alert(attrs.evolve(of, state=AlertState.RESOLVED, ends_at=9, reason="good again"))
    assert (resolved.state, resolved.ends_ns, resolved.reason) == (AlertState.RESOLVED, 9, "good again")
