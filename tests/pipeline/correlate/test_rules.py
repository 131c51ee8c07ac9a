"""Rule files: their content, and their errors."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from qmf.pipeline.correlate import RuleError, load_rules, parse_rules
from qmf.pipeline.correlate.message_templates import default_message, render, template_fields
from qmf.pipeline.correlate.rules import (
    AbsenceRule,
    CountRule,
    JoinRule,
    Limits,
    RateRule,
    RowSource,
    RuleKind,
    Selector,
    SequenceRule,
    ThresholdRule,
)
from qmf.pipeline.durations import format_duration, parse_duration
from qmf.schema import Severity

SECOND = 10**9

ALL = """
[disk-full]
kind = "threshold"
class = "qmf.host:filesystem"
agent = "qmf:host:*"
object = "*:/home"
where = "NOT readOnly"
value = "percent"
above = 90
clear = 85
for = "5m"
stale = "10m"
severity = "error"
message = "{mountPoint} is {value:.0f} % full"
evidence = ["size", "used"]

[too-slow]
kind = "rate"
package = "qmf.host"
class = "networkinterface"
value = "bytesReceived"
below = 1000
over = "1m"

[silent]
kind = "absence"
of = "heartbeats"
for = 30
goodbye = false

[no-samples]
kind = "absence"
of = "samples"
class = "cpu"
per = "agent"
for = "1m"
forget = "1d"

[robbery]
kind = "sequence"
within = "5m"
by = ["till"]
steps = [{event = "org.example.shop:opened"}, {event = "tillRobbed", where = "amount > 5"}]

[flapping]
kind = "count"
event = "qmf.host:interfaceDown"
by = ["_agent", "interface"]
at_least = 3
within = "10m"

[robbed-while-full]
kind = "join"
event = {name = "tillRobbed", id = "till"}
object = {class = "till", id = "name", where = "sales > 100"}
within = "1h"
"""


def test_every_kind_is_read() -> None:
    rules = {rule.name: rule for rule in parse_rules(ALL)}
    assert [rule.kind for rule in rules.values()] == [
        RuleKind.THRESHOLD,
        RuleKind.RATE,
        RuleKind.ABSENCE,
        RuleKind.ABSENCE,
        RuleKind.SEQUENCE,
        RuleKind.COUNT,
        RuleKind.JOIN,
    ]
    assert rules["disk-full"] == ThresholdRule(
        name="disk-full",
        severity=Severity.ERROR,
        message="{mountPoint} is {value:.0f} % full",
        evidence=("size", "used"),
        of=Selector(
            source=RowSource.SAMPLES,
            package="qmf.host",
            name="filesystem",
            agent="qmf:host:*",
            object="*:/home",
            where="NOT readOnly",
        ),
        value="percent",
        limits=Limits(limit=90, above=True, clear=85, duration=300 * SECOND, stale=600 * SECOND),
    )
    slow, silent, samples = rules["too-slow"], rules["silent"], rules["no-samples"]
    robbery, flapping, join = rules["robbery"], rules["flapping"], rules["robbed-while-full"]
    assert isinstance(slow, RateRule)
    assert (slow.limits.above, slow.limits.clear, slow.over, slow.counter) == (False, 1000, 60 * SECOND, None)
    assert isinstance(silent, AbsenceRule)
    assert (silent.of.source, silent.per_agent, silent.duration, silent.goodbye) == (
        RowSource.HEARTBEATS,
        True,
        30 * SECOND,
        False,
    )
    assert isinstance(samples, AbsenceRule)
    assert (samples.of.name, samples.per_agent, samples.forget) == ("cpu", True, 86_400 * SECOND)
    assert isinstance(robbery, SequenceRule)
    assert ([step.name for step in robbery.steps], robbery.by) == (["opened", "tillRobbed"], ("till",))
    assert robbery.clear_after == robbery.within
    assert isinstance(flapping, CountRule)
    assert (flapping.by, flapping.at_least) == (("_agent", "interface"), 3)
    assert isinstance(join, JoinRule)
    assert (join.event_id, join.object_id, join.same_agent) == ("till", "name", True)


def test_a_hash_changes_with_the_rule_and_only_with_it() -> None:
    (rule, *_) = parse_rules(ALL)
    assert parse_rules(ALL)[0].hash == rule.hash
    assert attrs.evolve(rule, message="other").hash != rule.hash
    assert len({item.hash for item in parse_rules(ALL)}) == 7


THRESHOLD = '[r]\nkind = "threshold"\nclass = "cpu"\nvalue = "x"\n'

WRONG = [
    ("", "rules.toml: no rule in it"),
    ("x = 1", "rules.toml: x: must be a table, [x]"),
    ("[r]\nkind = ", "rules.toml: Invalid value"),
    ("[r]", "rules.toml: r: kind: is missing"),
    (
        '[r]\nkind = "magic"',
        "rules.toml: r: kind: must be one of threshold, rate, absence, sequence, count, join, not 'magic'",
    ),
    (THRESHOLD, "rules.toml: r: above: give either above or below"),
    (THRESHOLD + "above = 1\nbelow = 1", "rules.toml: r: above: give either above or below"),
    (THRESHOLD + 'above = "1"', "rules.toml: r: above: must be a number, not '1'"),
    (THRESHOLD + "above = nan", "rules.toml: r: above: must be a number, not nan"),
    (THRESHOLD + "above = 1\nclear = 2", "rules.toml: r: clear: is on the wrong side of the limit 1"),
    (THRESHOLD + "below = 1\nclear = 0", "rules.toml: r: clear: is on the wrong side of the limit 1"),
    (THRESHOLD + 'above = 1\nfor = "soon"', "rules.toml: r: for: must be a time such as 30s, 1m30s or 2h, not 'soon'"),
    (THRESHOLD + "above = 1\nfor = -1", "rules.toml: r: for: must be longer than 0"),
    (THRESHOLD + "above = 1\nfro = 1", "rules.toml: r: fro: no such key"),
    (THRESHOLD + 'above = 1\nseverity = "bad"', "rules.toml: r: severity: must be one of emerg, alert, crit"),
    (THRESHOLD + 'above = 1\nmessage = "{a.b}"', "rules.toml: r: message: {a.b} must be a plain name"),
    (THRESHOLD + 'above = 1\nmessage = "{a"', "rules.toml: r: message: expected '}' before end of string"),
    (THRESHOLD + 'above = 1\npackage = "p"\n[q]', "rules.toml: q: kind: is missing"),
    (
        '[r]\nkind = "threshold"\nclass = "a:b"\npackage = "c"\nvalue = "x"\nabove = 1',
        "rules.toml: r: package: class has the package 'a'",
    ),
    ('[r]\nkind = "absence"\nof = "rain"\nfor = "1m"', "rules.toml: r: of: must be one of samples, events, heartbeats"),
    ('[r]\nkind = "absence"\nof = "events"\nfor = "1m"', "rules.toml: r: event: is missing"),
    (
        '[r]\nkind = "absence"\nof = "heartbeats"\nper = "object"\nfor = "1m"',
        "rules.toml: r: per: must be agent, or object for samples",
    ),
    ('[r]\nkind = "absence"\nof = "heartbeats"\nfor = "1m"\nforget = "1m"', "rules.toml: r: forget: must be longer"),
    ('[r]\nkind = "sequence"\nwithin = "1m"\nsteps = [{event = "a"}]', "rules.toml: r: steps: must be a list of two"),
    (
        '[r]\nkind = "sequence"\nwithin = "1m"\nsteps = [{event = "a"}, {evnt = "b"}]',
        "rules.toml: r: steps: 2: event: is missing\nrules.toml: r: steps: 2: evnt: no such key",
    ),
    ('[r]\nkind = "count"\nevent = "a"\nwithin = "1m"', "rules.toml: r: at_least: is missing"),
    (
        '[r]\nkind = "count"\nevent = "a"\nwithin = "1m"\nat_least = 0',
        "rules.toml: r: at_least: must be a whole number",
    ),
    ('[r]\nkind = "join"\nevent = "a"\nobject = {class = "b"}\nwithin = 1', "rules.toml: r: event: must be a table"),
    ('[r]\nkind = "rate"\nclass = "a"\nvalue = "x"\nabove = 1\nover = "2h"', "rules.toml: r: over: is longer than"),
]


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_errors_are_reported_with_file_rule_and_key(text: str, message: str) -> None:
    with pytest.raises(RuleError) as caught:
        parse_rules(text, "rules.toml")
    assert message in str(caught.value)


def test_all_errors_of_a_file_are_reported_at_once() -> None:
    with pytest.raises(RuleError) as caught:
        parse_rules(f'{THRESHOLD}fro = 1\n[s]\nkind = "count"', "rules.toml")
    assert str(caught.value).splitlines() == [
        "rules.toml: r: above: give either above or below",
        "rules.toml: r: fro: no such key",
        "rules.toml: s: event: is missing",
        "rules.toml: s: at_least: is missing",
        "rules.toml: s: within: is missing",
    ]


def test_the_example_is_right() -> None:
    rules = load_rules(Path(__file__).parents[3] / "examples" / "rules.toml")
    assert {rule.kind for rule in rules} == set(RuleKind)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(RuleError, match=r"none\.toml: No such file or directory"):
        load_rules(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("text", "ns"),
    [("90s", 90), ("1m30s", 90), ("1m 30s", 90), ("2h", 7200), ("1d", 86_400), ("0.5s", 0.5), ("10 minutes", 600)],
)
def test_durations(text: str, ns: float) -> None:
    assert parse_duration(text) == ns * SECOND
    assert parse_duration(format_duration(parse_duration(text))) == ns * SECOND


def test_a_message_never_fails() -> None:
    (rule, *_) = parse_rules(ALL)
    template = "{mountPoint} {value:.1f} {nothing} {object:>3} {limit:g} {duration} {{}}"
    text = render(attrs.evolve(rule, message=template), {"mountPoint": None, "value": "x", "object": 1})
    assert text == "? x ?   1 90 5m {}"
    assert template_fields(template) == ("mountPoint", "value", "nothing", "object", "limit", "duration")


def test_every_kind_has_a_message_of_its_own() -> None:
    texts = [default_message(attrs.evolve(rule, message=None)) for rule in parse_rules(ALL)]
    assert texts == [
        "percent is {value:g}, above {limit:g} for {duration}",
        "bytesReceived changes by {value:g} per second, below {limit:g}",
        "no heartbeats for {duration}",
        "no cpu for {duration}",
        "org.example.shop:opened, then tillRobbed within {duration}",
        "{count} times qmf.host:interfaceDown within {duration}",
        "tillRobbed while till: sales > 100",
    ]
