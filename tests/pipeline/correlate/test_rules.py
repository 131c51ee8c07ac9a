"""Rule files: their content, and their errors."""

from __future__ import annotations

import re
from pathlib import Path

import attrs
import pytest

from qmf.pipeline.correlate import RuleError, load_rules, parse_rules
from qmf.pipeline.correlate.message_templates import default_message, human, render, template_fields
from qmf.pipeline.correlate.rules import (
    AbsenceRule,
    Aggregate,
    CountRule,
    JoinRule,
    Level,
    Limits,
    Per,
    RateRule,
    RatioRule,
    RuleKind,
    RuleSelector,
    SelectedTable,
    SequenceRule,
    ThresholdRule,
)
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
        of=RuleSelector(
            source=SelectedTable.SAMPLES,
            package="qmf.host",
            name="filesystem",
            agent="qmf:host:*",
            object="*:/home",
            where="NOT readOnly",
        ),
        value="percent",
        limits=Limits(
            above=True,
            levels=(Level(severity=Severity.ERROR, limit=90, clear=85, duration=300 * SECOND),),
            stale=600 * SECOND,
        ),
    )
    slow, silent, samples = rules["too-slow"], rules["silent"], rules["no-samples"]
    robbery, flapping, join = rules["robbery"], rules["flapping"], rules["robbed-while-full"]
    assert isinstance(slow, RateRule)
    assert (slow.limits.above, slow.limits.levels[0].clear, slow.over) == (False, 1000, 60 * SECOND)
    assert slow.counter is None
    assert isinstance(silent, AbsenceRule)
    assert (silent.of.source, silent.per, silent.duration, silent.goodbye) == (
        SelectedTable.HEARTBEATS,
        Per.AGENT,
        30 * SECOND,
        False,
    )
    assert isinstance(samples, AbsenceRule)
    assert (samples.of.name, samples.per, samples.forget) == ("cpu", Per.AGENT, 86_400 * SECOND)
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
        "rules.toml: r: kind: must be one of threshold, rate, ratio, absence, absent, sequence, count, join,",
    ),
    (THRESHOLD, "rules.toml: r: above: give either above or below"),
    (THRESHOLD + "above = 1\nbelow = 1", "rules.toml: r: above: give either above or below"),
    (THRESHOLD + 'above = "1"', "rules.toml: r: above: must be a number, not '1'"),
    (THRESHOLD + "above = nan", "rules.toml: r: above: must be a number, not nan"),
    (THRESHOLD + "above = 1\nclear = 2", "rules.toml: r: clear: is on the wrong side of the limit 1"),
    (THRESHOLD + "below = 1\nclear = 0", "rules.toml: r: clear: is on the wrong side of the limit 1"),
    (THRESHOLD + 'above = 1\nfor = "soon"', "rules.toml: r: for: must be a time such as 30s, 1m30s or 2h, not 'soon'"),
    (THRESHOLD + "above = 1\nfor = inf", "rules.toml: r: for: must be a time such as"),
    (THRESHOLD + "above = 1\nfor = -1", "rules.toml: r: for: must be longer than 0"),
    (THRESHOLD + "above = 1\nfro = 1", "rules.toml: r: fro: no such key"),
    (THRESHOLD + 'above = 1\nseverity = "bad"', "rules.toml: r: severity: must be one of emerg, alert, crit"),
    (THRESHOLD + 'above = 1\nmessage = "{a.b.c}"', "rules.toml: r: message: {a.b.c} must be a plain name"),
    (
        THRESHOLD + 'above = 1\nmessage = "{a.b}"',
        "rules.toml: r: message: {a. ...}: follow doesn't say to which class a refers",
    ),
    (THRESHOLD + 'above = 1\nfollow = {a = "b"}', "rules.toml: r: follow.a: must be a class such as qmf.host:host"),
    (
        THRESHOLD + 'above = 1\nlabels = {a = "{value}"}',
        "rules.toml: r: labels.a: {value} changes while the alert lasts, and labels identify it: use annotations",
    ),
    (THRESHOLD + "above = 1\nlabels = 3", "rules.toml: r: labels: must be a table of texts, not 3"),
    (THRESHOLD + 'above = 1\nunit = "pint"', "rules.toml: r: unit: must be one of bytes, bytes/s, ns, ns/s,"),
    (THRESHOLD + 'above = 1\nexpr = "up"', "rules.toml: r: expr: no such key; give class, value, and above or below"),
    (THRESHOLD + 'above = 1\nwhere = "x >"', "rules.toml: r: where: 'x >': not an expression at column 3"),
    (THRESHOLD + 'above = 1\nwhere = "sum(x) > 1"', "rules.toml: r: where: 'sum(x) > 1': it has an aggregate"),
    (THRESHOLD + 'above = 1\nwhere = "x in (select 1)"', "rules.toml: r: where: 'x in (select 1)': it has a query"),
    (THRESHOLD + 'above = 1\nwhere = "x; drop y"', "rules.toml: r: where: 'x; drop y': not one expression"),
    (THRESHOLD + "above = 1\nlevels = []", "rules.toml: r: above: belongs into the tables of levels"),
    (THRESHOLD + "levels = []", "rules.toml: r: levels: must be a list of tables"),
    (THRESHOLD + "levels = [{above = 1}]", "rules.toml: r: levels: 1: severity: is missing"),
    (
        THRESHOLD + 'levels = [{severity = "warn", above = 1}, {severity = "warn", above = 2}]',
        "rules.toml: r: levels: two have the severity warn",
    ),
    (
        THRESHOLD + 'levels = [{severity = "crit", above = 1}, {severity = "warn", above = 2}]',
        "rules.toml: r: levels: crit must be farther than warn, but has 1 after 2",
    ),
    (
        THRESHOLD + 'levels = [{severity = "crit", above = 1}, {severity = "warn", below = 2}]',
        "rules.toml: r: levels: must all have above, or all have below",
    ),
    (
        '[r]\nkind = "ratio"\nabove = 1\ndividend = {class = "a", value = "x"}',
        "rules.toml: r: divisor: is missing",
    ),
    (
        '[r]\nkind = "absence"\nclass = "a"\nexpect = ["b"]\nfor = "1m"',
        'rules.toml: r: expect: needs per = "agent"',
    ),
    (THRESHOLD + 'above = 1\nmessage = "{a"', "rules.toml: r: message: expected '}' before end of string"),
    (THRESHOLD + 'above = 1\npackage = "p"\n[q]', "rules.toml: q: kind: is missing"),
    (
        '[r]\nkind = "threshold"\nclass = "a:b"\npackage = "c"\nvalue = "x"\nabove = 1',
        "rules.toml: r: package: class has the package 'a'",
    ),
    (
        '[r]\nkind = "absence"\nof = "rain"\nfor = "1m"',
        "rules.toml: r: of: must be one of samples, events, heartbeats, gaps",
    ),
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
    assert message in re.sub(r"^(rules\.toml):\d+:", r"\1:", str(caught.value), flags=re.MULTILINE)


def test_all_errors_of_a_file_are_reported_at_once() -> None:
    with pytest.raises(RuleError) as caught:
        parse_rules(f'{THRESHOLD}fro = 1\n[s]\nkind = "count"', "rules.toml")
    assert str(caught.value).splitlines() == [
        "rules.toml:1: r: above: give either above or below",
        "rules.toml:5: r: fro: no such key",
        "rules.toml:6: s: event: is missing",
        "rules.toml:6: s: at_least: is missing",
        "rules.toml:6: s: within: is missing",
    ]


def test_every_syntax_error_has_its_line() -> None:
    text = '[a]\nkind = \n[b]\nvalue = """\n[x]\n"""\nkind = "count"\n[c]\nfoo bar\n'
    with pytest.raises(RuleError) as caught:
        parse_rules(text, "r.toml")
    assert str(caught.value).splitlines() == [
        "r.toml:2: Invalid value",
        "r.toml:9: Expected '=' after a key in a key/value pair",
    ]
    with pytest.raises(RuleError, match=r"^r.toml:2: Cannot declare"):
        parse_rules("[a]\n[a]\n", "r.toml")


def test_lines_are_those_of_keys_in_tables_texts_and_lists() -> None:
    text = """
[r]
kind = "threshold"
message = '''
[x] = 1
above = 3
'''
class = "c"
levels = [
    # above = 1 ]
    {severity = "warn", above = 1},
]
valu = "x"

[r.labels]
team = 1979-05-27

["q r".annotations]
a = "{"
"""
    with pytest.raises(RuleError) as caught:
        parse_rules(text, "r.toml")
    assert str(caught.value).splitlines() == [
        "r.toml:2: r: value: is missing",
        "r.toml:13: r: valu: no such key",
        "r.toml:16: r: labels.team: must be a text, not datetime.date(1979, 5, 27)",
        "r.toml:18: q r: kind: is missing",
    ]


def test_levels_are_sorted_by_severity_and_share_what_is_common() -> None:
    (made,) = parse_rules(
        THRESHOLD + 'for = "1m"\nkeep_firing_for = "30s"\n'
        'levels = [{severity = "crit", below = 5, for = 0}, {severity = "notice", below = 20, clear = 30}]'
    )
    assert isinstance(made, ThresholdRule)
    assert made.severity is Severity.NOTICE
    assert made.limits == Limits(
        above=False,
        levels=(
            Level(severity=Severity.NOTICE, limit=20, clear=30, duration=60 * SECOND),
            Level(severity=Severity.CRIT, limit=5, clear=5),
        ),
        keep=30 * SECOND,
    )


def test_a_rule_may_be_absent_aggregated_or_a_ratio() -> None:
    absent, sums, ratio = parse_rules(
        """
[absent]
kind = "absent"
class = "host"
for = "1m"
[sums]
kind = "rate"
class = "disk"
value = "written"
aggregate = "sum"
by = ["_agent"]
above = 1e6
labels = {team = "storage", disk = "{_agent}"}
annotations = {summary = "{value:bytes} a second", runbook = "see {rule}"}
[ratio]
kind = "ratio"
dividend = {class = "queue", value = "depth", id = "brokerRef"}
divisor = {class = "broker", value = "memory"}
above = 0.5
"""
    )
    assert isinstance(absent, AbsenceRule)
    assert (absent.per, absent.expected_keys, absent.of.source) == (Per.RULE, ("",), SelectedTable.SAMPLES)
    assert isinstance(sums, RateRule)
    assert (sums.aggregate, sums.by, sums.grouped_by) == (Aggregate.SUM, ("_agent",), ("_agent",))
    assert (sums.message, sums.annotations) == ("{value:bytes} a second", {"runbook": "see {rule}"})
    assert sums.labels == {"team": "storage", "disk": "{_agent}"}
    assert isinstance(ratio, RatioRule)
    assert (ratio.dividend.id, ratio.divisor.id, ratio.same_agent) == ("brokerRef", "_object", True)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1_610_612_736, "bytes", "1.61 GB"),
        (12, "bytes", "12 B"),
        (1.5e12, "bytes/s", "1.5 TB/s"),
        (8.1e8, "ns", "810ms"),
        (8.1e8, "ns/s", "81 %"),
        (1500, "ns", "1.5µs"),
        (90.26, "s", "1m 30s"),
        (2.5, "s", "2.5s"),
        (-3, "s", "-3s"),
        (93.27, "percent", "93.3 %"),
        (0.5, "ratio", "50 %"),
        (1234567, "number", "1.23 M"),
        (999, "number", "999"),
        (-12000, "per second", "-12 k/s"),
    ],
)
def test_values_are_shown_in_units_for_people(value: float, unit: str, text: str) -> None:
    assert human(value, unit) == text


def test_templates_have_the_formats_of_prometheus() -> None:
    (rule, *_) = parse_rules(ALL)
    template = "{value:humanize} {value:humanize1024} {value:humanizeDuration} {value:humanizePercentage} {value:human}"
    text = render(attrs.evolve(rule, message=template, unit="ns"), {"value": 2048.0})
    assert text == "2.05 k 2 KiB 34m 8s 204,800 % 2.05µs"


def test_the_example_is_right() -> None:
    rules = load_rules(Path(__file__).parents[3] / "examples" / "rules.toml")
    assert {rule.kind for rule in rules} == set(RuleKind)
    assert len({rule.name for rule in rules}) == len(rules)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(RuleError, match=r"none\.toml: No such file or directory"):
        load_rules(tmp_path / "none.toml")


def test_a_message_never_fails() -> None:
    (rule, *_) = parse_rules(ALL)
    template = "{mountPoint} {value:.1f} {nothing} {object:>3} {limit:g} {duration} {{}}"
    values = {"mountPoint": None, "value": "x", "object": 1, "limit": 90.0}
    text = render(attrs.evolve(rule, message=template), values)
    assert text == "? x ?   1 90 5m {}"
    assert template_fields(template) == ("mountPoint", "value", "nothing", "object", "limit", "duration")


def test_every_kind_has_a_message_of_its_own() -> None:
    texts = [default_message(attrs.evolve(rule, message=None)) for rule in parse_rules(ALL)]
    assert texts == [
        "percent is {value:human}, above {limit:human} for {duration}",
        "bytesReceived changes by {value:human}, below {limit:human}",
        "no heartbeats for {duration}",
        "no cpu for {duration}",
        "org.example.shop:opened, then tillRobbed within {duration}",
        "{count} times qmf.host:interfaceDown within {duration}",
        "tillRobbed while till: sales > 100",
    ]
