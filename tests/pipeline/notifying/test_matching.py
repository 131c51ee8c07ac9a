"""Matchers, inhibition, silences and the tree of routes."""

from __future__ import annotations

import datetime

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.pipeline.correlate.alerts import Alert, AlertState
from qmf.pipeline.notifying.active_alert import ActiveAlert, common_pairs, fingerprint, newest
from qmf.pipeline.notifying.inhibition import Inhibitor, InhibitRule
from qmf.pipeline.notifying.matchers import Matcher, parse_matcher, parse_matchers, parse_query
from qmf.pipeline.notifying.routes import Route
from qmf.pipeline.notifying.silences import (
    Silence,
    SilenceState,
    format_time,
    next_change,
    parse_time,
    silenced_by,
)
from qmf.schema import Severity


def alert(id: str, start: int = 0, end: int | None = None, **labels: str) -> ActiveAlert:
    return ActiveAlert(id=id, incident=id, labels=labels, starts_ns=start, ends_ns=end)


@pytest.mark.parametrize(
    ("text", "labels", "expected"),
    [
        ("a=b", {"a": "b"}, True),
        ('a="b"', {"a": "b"}, True),
        ("a=b", {"a": "bc"}, False),
        ("a!=b", {}, True),
        ("a=", {}, True),
        ('a!=""', {}, False),
        ('a =~ "b|c.*"', {"a": "cd"}, True),
        ('a=~"b"', {"a": "ab"}, False),
        ("a!~b.*", {"a": "b"}, False),
        ("a!~b.*", {"a": "c"}, True),
        ('agent="a=b"', {"agent": "a=b"}, True),
        (r'a="x\"y\\z\n"', {"a": 'x"y\\z\n'}, True),
        (r'a=~"qmf\.host:.*"', {"a": "qmf.host:x"}, True),
    ],
)
def test_a_matcher(text: str, labels: dict[str, str], expected: bool) -> None:
    assert parse_matcher(text).matches(labels) is expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is not a matcher"),
        ("severity", "is not a matcher"),
        ("1a=b", "is not a matcher"),
        ('a="b', "not closed"),
        ('a=b"', "in quotes"),
        ('a="b"c"', "inside"),
        ('a="b\\"', "not closed"),
        ('a=~"("', "not a regular expression"),
    ],
)
def test_what_is_no_matcher(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_matcher(text)


def test_the_first_of_a_query_may_be_a_name() -> None:
    assert parse_query(["disk-full", "a=b"]) == parse_matchers(["alertname=disk-full", "a=b"])
    assert parse_query(["a=b"]) == parse_matchers(["a=b"])
    assert parse_query([]) == ()
    for texts in (["a=b", "disk-full"], ['disk"full'], ["=x"]):
        with pytest.raises(ValueError, match="is not a matcher"):
            parse_query(texts)


@given(st.from_regex(r"[a-zA-Z_]\w*", fullmatch=True).filter(str.isascii), st.text(), st.booleans())
def test_a_matcher_survives_its_text_and_json(name: str, value: str, is_equal: bool) -> None:
    matcher = Matcher(name, value, is_equal=is_equal)
    assert parse_matcher(str(matcher)) == matcher
    assert Matcher.from_json(matcher.to_json()) == matcher


@pytest.mark.parametrize(
    "content", [{}, {"name": 1, "value": "x"}, {"name": "a", "value": None}, {"name": "a", "value": "(", "isRegex": 1}]
)
def test_json_that_is_no_matcher(content: dict[str, object]) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        Matcher.from_json(content)


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
    assert ActiveAlert.from_json(resolved.to_json()) == resolved


# -- inhibition

DEAD = InhibitRule(
    source=parse_matchers(["alertname=dead"]), target=parse_matchers(["severity=~warn|error"]), equal=("agent",)
)


def test_inhibition() -> None:
    dead = alert("1", alertname="dead", agent="a", severity="crit")
    inhibitor = Inhibitor([DEAD], [dead])
    assert inhibitor.inhibited_by(alert("2", alertname="full", agent="a", severity="warn")) is dead
    assert inhibitor.inhibited_by(alert("3", alertname="full", agent="b", severity="warn")) is None
    assert inhibitor.inhibited_by(alert("4", alertname="full", agent="a", severity="crit")) is None
    assert inhibitor.inhibited_by(dead) is None


def test_only_what_fires_inhibits() -> None:
    over = alert("1", 0, 5, alertname="dead", agent="a")
    pending = attrs.evolve(alert("2", alertname="dead", agent="a"), pending=True)
    inhibitor = Inhibitor([DEAD], [over, pending])
    assert inhibitor.inhibited_by(alert("3", alertname="full", agent="a", severity="warn")) is None


def test_alerts_on_both_sides_do_not_inhibit_each_other() -> None:
    both = InhibitRule(source=parse_matchers(["a=1"]), target=parse_matchers(["a=1"]))
    one, two = alert("1", a="1"), alert("2", a="1")
    assert Inhibitor([both], [one, two]).inhibited_by(two) is None
    wider = InhibitRule(source=parse_matchers(["a=1"]), target=())
    assert Inhibitor([wider], [one, two]).inhibited_by(two) is None
    assert Inhibitor([wider], [one, two]).inhibited_by(alert("3")) is one


def test_a_label_that_both_lack_is_equal() -> None:
    rule = InhibitRule(source=parse_matchers(["s=1"]), target=parse_matchers(["t=1"]), equal=("zone",))
    source = alert("1", s="1")
    assert Inhibitor([rule], [source]).inhibited_by(alert("2", t="1")) is source
    assert Inhibitor([rule], [source]).inhibited_by(alert("2", t="1", zone="x")) is None


# -- silences


def silence(start: int, end: int, *matchers: str, id: str = "1") -> Silence:
    return Silence(
        id=id, matchers=parse_matchers(matchers), starts_ns=start, ends_ns=end, created_by="me", comment="why",
        updated_ns=0,
    )  # fmt: skip


def test_the_states_of_a_silence() -> None:
    of = silence(10, 20, "a=1")
    assert [of.state(now) for now in (9, 10, 19, 20)] == [
        SilenceState.PENDING, SilenceState.ACTIVE, SilenceState.ACTIVE, SilenceState.EXPIRED,
    ]  # fmt: skip
    assert [silenced_by([of], {"a": "1"}, now) is of for now in (9, 10, 20)] == [False, True, False]
    assert silenced_by([of], {"a": "2"}, 15) is None
    assert of.expired(15).state(15) is of.expired(5).state(5) is SilenceState.EXPIRED
    assert of.expired(30).ends_ns == 20
    assert (next_change([of], 5), next_change([of], 10), next_change([of], 20)) == (10, 20, None)


@given(st.integers(0, 2**62), st.integers(0, 2**62))
def test_a_silence_survives_its_json(start: int, end: int) -> None:
    of = silence(start, end, "a=1", 'b=~"x|y"')
    assert Silence.from_json(of.to_json()) == of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01T00:00:01Z", 10**9),
        ("1970-01-01T00:00:01.000000005Z", 10**9 + 5),
        ("1970-01-01 01:00:01.5+01:00", 15 * 10**8),
        ("1970-01-02", 86_400 * 10**9),
    ],
)
def test_times(text: str, expected: int) -> None:
    assert parse_time(text) == expected


def test_a_time_is_written_as_the_standard_says() -> None:
    at = datetime.datetime(2030, 1, 31, 12, tzinfo=datetime.UTC)
    assert format_time(int(at.timestamp()) * 10**9 + 5 * 10**8) == "2030-01-31T12:00:00.5Z"


@pytest.mark.parametrize("text", ["", "now", "2030-13-01", "2030-01-01T00:00:00.Z"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(ValueError, match="must be a time"):
        parse_time(text)


# -- routes


def test_the_deepest_route_that_matches_takes_the_alert() -> None:
    deep = Route(key="d", receiver="deep", matchers=parse_matchers(["zone=x"]))
    first = Route(key="1", receiver="first", matchers=parse_matchers(["severity=crit"]), routes=(deep,))
    copy = Route(key="2", receiver="copy", matchers=parse_matchers(["team=db"]), continues=True)
    last = Route(key="3", receiver="last", matchers=parse_matchers(["team=~db|web"]))
    root = Route(receiver="root", routes=(first, copy, last))

    def found(**labels: str) -> list[str]:
        return [route.receiver for route in root.find(labels)]

    assert found() == ["root"]
    assert found(severity="crit") == ["first"]
    assert found(severity="crit", zone="x", team="db") == ["deep"]
    assert found(team="db") == ["copy", "last"]
    assert found(team="web") == ["last"]
    assert [route.key for route in root.walk()] == ["{}", "1", "d", "2", "3"]


def test_the_key_of_a_group() -> None:
    labels = {"alertname": "full", "agent": 'a"b', "object": "o"}
    assert Route(receiver="r").group_key(labels) == "{}:{}"
    by = Route(receiver="r", group_by=("object", "alertname", "zone"))
    assert by.group_key(labels) == '{}:{alertname="full", object="o"}'
    assert by.group_labels(labels) == {"object": "o", "alertname": "full"}
    assert Route(receiver="r", group_by=("...",)).group_labels(labels) == labels
