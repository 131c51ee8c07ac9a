"""Tests of rules: given rows, and the alerts at some times; and the commands about rules."""

from __future__ import annotations

from pathlib import Path

import pytest
from pipeline.lakes import Shop

from qmf.models.host.schema import CPU
from qmf.pipeline.cli import main
from qmf.pipeline.correlate import RuleError
from qmf.pipeline.correlate.rule_tests import expand, load_rule_tests, run_rule_tests
from qmf.pipeline.lake.columns import ClassVersion

EXAMPLES = Path(__file__).parents[3] / "examples"

RULES = """
[busy]
kind = "threshold"
class = "till"
value = "queue"
above = 5
for = "1m"
message = "{name} has {value:human}"

[robbed]
kind = "count"
event = "tillRobbed"
at_least = 2
within = "5m"

[share]
kind = "ratio"
dividend = {class = "till", value = "queue", id = "shopRef"}
divisor = {class = "shop", value = "guests"}
above = 0.5

[named]
kind = "threshold"
class = "till"
value = "queue + shopRef.extra"
follow = {shopRef = "x:shop"}
above = 7
labels = {city = "{shopRef.city}"}
"""


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1 -2 0.5", [1, -2, 0.5]),
        ("5x2", [5, 5, 5]),
        ("1+2x2 10-1x1", [1, 3, 5, 10, 9]),
        ("_x2 3", [None, None, 3]),
        ("1e3", [1000]),
    ],
)
def test_values_have_the_notation_of_promtool(text: str, values: list[float | None]) -> None:
    assert expand(text) == values


def test_a_wrong_notation() -> None:
    with pytest.raises(ValueError, match="'5y' is not a value such as 5, 5x3"):
        expand("5y")


def write(folder: Path, tests: str, rules: str = RULES) -> str:
    (folder / "r.toml").write_text(rules, encoding="utf-8")
    path = folder / "t.toml"
    path.write_text(f'rule_files = ["r.toml"]\n{tests}', encoding="utf-8")
    return str(path)


def results(folder: Path, tests: str, rules: str = RULES) -> list[str]:
    return [text for _test, wrong in run_rule_tests(load_rule_tests(write(folder, tests, rules))) for text in wrong]


TILL = """
[[tests]]
name = "one"
[[tests.input_series]]
class = "till"
object = "1"
values = {queue = "3 6x3 2", name = "one", shopRef = "corner"}
"""


def check(at: str, name: str, expected: str) -> str:
    return f'[[tests.alert_rule_test]]\neval_time = "{at}"\nalertname = "{name}"\nexp_alerts = [{expected}]\n'


def test_alerts_at_their_times(tmp_path: Path) -> None:
    good = TILL + check("1m", "busy", '{state = "pending"}') + check("2m", "busy", "{}") + check("5m", "busy", "")
    assert results(tmp_path, good) == []


def test_what_is_different_is_said_with_its_line(tmp_path: Path) -> None:
    wrong = (
        TILL
        + check("0s", "busy", "{}")
        + check("2m", "busy", '{severity = "crit"}')
        + check("3m", "busy", "")
        + check("3m", "busy", '{exp_annotations = {summary = "x"}}')
    )
    file = tmp_path / "t.toml"
    shown = "firing warn agent='agent' object='1' summary='one has 6'"
    assert results(tmp_path, wrong) == [
        f"{file}:9: one: at 0s, busy: expected firing, got no alert",
        f"{file}:13: one: at 2m, busy: expected firing crit, got {shown}",
        f"{file}:17: one: at 3m, busy: expected no other alert, got {shown}",
        f"{file}:21: one: at 3m, busy: expected firing summary='x', got {shown}",
    ]


def test_events_ratios_and_references(tmp_path: Path) -> None:
    rows = (
        TILL
        + """
[[tests.input_series]]
class = "x:shop"
object = "corner"
values = {guests = "10x4", city = "York", extra = 1}
[[tests.input_series]]
event = "tillRobbed"
values = "1 _ 1"
"""
        + check("1m", "share", "{}")
        + check("1m", "robbed", "")
        + check("2m", "robbed", "{}")
        + check("5m", "share", "")
        + check("2m", "named", "")
    )
    assert results(tmp_path, rows) == []
    assert results(tmp_path, rows + check("2m", "named", "{}"), RULES.replace("above = 7", "above = 6")) == [
        f"{tmp_path / 't.toml'}:33: one: at 2m, named: expected no other alert, "
        "got firing warn agent='agent' object='1' city='York' summary='queue + shopRef.extra is 7, above 6'"
    ]


def test_an_object_that_is_deleted_and_an_agent_that_leaves(tmp_path: Path) -> None:
    rows = TILL.replace("6x3 2", "6x1 deleted") + check("2m", "busy", "{}") + check("3m", "busy", "")
    assert results(tmp_path, rows) == []
    leaves = """
[[tests.input_series]]
of = "agents"
start = "150s"
values = {change = ["removed"], reason = "goodbye"}
"""
    assert results(tmp_path, TILL + leaves + check("2m", "busy", "{}") + check("160s", "busy", "")) == []


def test_errors_of_a_file_of_tests(tmp_path: Path) -> None:
    text = """
[[tests]]
[[tests.input_series]]
class = "till"
values = {queue = "3 6y3"}
[[tests.input_series]]
object = "x"
[[tests.alert_rule_test]]
eval_time = "soon"
[[tests]]
input_series = []
"""
    with pytest.raises(RuleError) as caught:
        load_rule_tests(write(tmp_path, text.replace("6y3", "6x3") + check("1m", "nobody", "")))
    assert [line.partition("t.toml:")[2] for line in str(caught.value).splitlines()] == [
        "7: tests: 1: input_series: 2: class: is missing",
        "7: tests: 1: input_series: 2: values: must be a table of columns, or a text such as "
        '"1x10" for rows without any',
        "9: tests: 1: alert_rule_test: 1: alertname: is missing",
        "10: tests: 1: alert_rule_test: 1: eval_time: must be a time such as 30s, 1m30s or 2h, not 'soon'",
    ]
    with pytest.raises(RuleError, match=r"t.toml:9: one: no rule 'nobody' in r.toml"):
        load_rule_tests(write(tmp_path, TILL + check("1m", "nobody", "")))


def test_the_example_passes_its_tests(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "test", str(EXAMPLES / "rules.test.toml")]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "ok  a disk fills up"


def test_failed_tests_have_an_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "test", write(tmp_path, TILL + check("0s", "busy", "{}"))]) == 2
    out, err = capsys.readouterr()
    assert out.startswith("FAILED  one\n  ")
    assert err == "qmf-pipeline: 1 of 1 tests failed\n"


def test_a_check_names_every_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = tmp_path / "good.toml", tmp_path / "bad.toml"
    good.write_text(RULES, encoding="utf-8")
    bad.write_text('[a]\nkind = "count"\n[b]\nkind = "ratoi"\n', encoding="utf-8")
    assert main(["rules", "check", str(good)]) == 0
    assert capsys.readouterr().out == f"{good}: 4 rules, no error\n"
    assert main(["rules", "check", str(bad), str(good)]) == 2
    assert capsys.readouterr().err.splitlines()[:3] == [
        "qmf-pipeline: 4 errors",
        f"{bad}:1: a: event: is missing",
        f"{bad}:1: a: at_least: is missing",
    ]


def test_a_check_names_errors_of_notifications_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "rules.toml"
    file.write_text(f'{RULES}\n[route]\nreceiver = "nobody"\n[wrong]\nkind = "x"\n', encoding="utf-8")
    assert main(["rules", "check", str(file)]) == 2
    first, *others = capsys.readouterr().err.splitlines()
    assert first == "qmf-pipeline: 2 errors"
    line = RULES.count("\n") + 3
    assert sorted(text.split(": ")[0] for text in others) == [f"{file}:{line}", f"{file}:{line + 2}"]
    assert "there is no receiver 'nobody'" in "".join(others)
    file.write_text("[full\n", encoding="utf-8")
    assert main(["rules", "check", str(file)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 2  # wrong syntax is reported once


def test_a_check_compares_with_the_classes_of_a_lake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shop = Shop(tmp_path / "lake")
    shop.put((0, 0), queue=6, name="one")
    rules = tmp_path / "rules.toml"
    rules.write_text(
        '[a]\nkind = "threshold"\nclass = "till"\nvalue = "quue"\nabove = 1\n'
        '[b]\nkind = "threshold"\nclass = "till"\nabove = 1\nvalue = "queue"\nwhere = "name"\n'
        '[c]\nkind = "threshold"\nclass = "shelf"\nvalue = "x"\nabove = 1\n',
        encoding="utf-8",
    )
    assert main(["rules", "check", str(rules), "--lake", shop.root]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "qmf-pipeline: 2 errors",
        f"{rules}:4: a: value: 'quue': the class has no 'quue'; did you mean 'queue'?",
        f"{rules}:11: b: where: 'name': is not a condition but VARCHAR",
    ]
    rules.write_text('[c]\nkind = "threshold"\nclass = "shelf"\nvalue = "x"\nabove = 1\n', encoding="utf-8")
    assert main(["rules", "check", str(rules), "--lake", shop.root]) == 0
    assert "c: the lake has no class shelf yet" in capsys.readouterr().out


def test_a_try_shows_what_would_have_been_raised(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shop = Shop(tmp_path / "lake")
    shop.put((0, 0), (100, 0), queue=6, name="one")
    shop.put((120, 0), queue=6, name="two", object="two")
    shop.put((130, 0), queue=1, name="one")
    rules = tmp_path / "rules.toml"
    rules.write_text('[a]\nkind = "threshold"\nclass = "till"\nvalue = "queue"\nabove = 5\n', encoding="utf-8")
    assert main(["rules", "try", str(rules), "--lake", shop.root, "--from", "1970-01-01", "--to", "1970-01-01"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "1970-01-01T00:00:00.000000Z raised  a: queue is 6, above 5 (a, one)",
        "1970-01-01T00:02:00.000000Z raised  a: queue is 6, above 5 (a, two)",
        "1970-01-01T00:02:10.000000Z cleared a: back at 1 (a, one)",
        "2 alerts, 1 of them open at the end; 4 rows evaluated, of which 0 count as of their arrival "
        "and 0 came too late",
    ]
    assert not (tmp_path / "lake" / "_tables").exists()


MISTAKES = """
[zero]
kind = "threshold"
class = "qmf.host:cpu"
where = "cpuId = 'zero'"
value = "userTime"
above = 1

[texts]
kind = "threshold"
class = "qmf.host:cpu"
value = "nosuch(abs(userTime))"
above = 1
message = "{{ $labels.instance }} is at {{ $value | humanize }}, {{json}}"
labels = {severity = "page", alertname = "x", team = "a"}

[texts.annotations]
a = "{value:zz} {count:zz} {cpuId:zz} {limit:s}"
b = "{value:.0f} {count:d} {rule:>10} {value:human} {value:humanize1024} {limit:,.1f}"

[lost]
kind = "count"
event = "noSuchEvent"
at_least = 1
within = "1m"
"""


def test_mistakes_are_found_before_rules_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "rules.toml"
    file.write_text(MISTAKES)
    assert main(["rules", "check", str(file)]) == 2
    texts = [
        "12: texts: value: 'nosuch(abs(userTime))': there is no function NOSUCH",
        "14: texts: message: {{ $labels.instance }} is a template of Prometheus, and no value here: write {name}",
        "14: texts: message: {{ $value | humanize }} is a template of Prometheus, and no value here: write {name}",
        "17: texts: annotations.a: {value:zz}: there is no such format for it",
        "17: texts: annotations.a: {count:zz}: there is no such format for it",
        "17: texts: annotations.a: {cpuId:zz}: there is no such format for it",
        "17: texts: annotations.a: {limit:s}: there is no such format for it",
        "15: texts: labels.alertname: each alert has this label by itself; use another name",
        "15: texts: labels.severity: each alert has this label by itself; use another name",
    ]
    assert capsys.readouterr().err.splitlines() == ["qmf-pipeline: 9 errors", *(f"{file}:{text}" for text in texts)]


@pytest.mark.parametrize("place", ["lake", "schema"])
def test_expressions_are_compared_with_the_types_of_a_lake_or_of_schemas(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    schema = Path(__file__).parents[3] / "schemas" / "host.xml"
    arguments = ["--schema", str(schema)]
    if place == "lake":
        shop = Shop(tmp_path / "lake")
        shop.put((0, 0), table=ClassVersion.from_schema(CPU))
        arguments = ["--lake", shop.root]
    file = tmp_path / "rules.toml"
    file.write_text(MISTAKES.replace("nosuch(abs(userTime))", "nosuch(usrTime)"))
    assert main(["rules", "check", str(file), *arguments]) == 2
    assert capsys.readouterr().err.splitlines()[1:3] == [
        f"{file}:5: zero: where: \"cpuId = 'zero'\": Could not convert string 'zero' to INT32",
        f"{file}:12: texts: value: 'nosuch(usrTime)': the class has no 'usrTime'; did you mean 'usertime'?",
    ]
    file.write_text(MISTAKES[MISTAKES.index("[lost]") :])
    assert main(["rules", "check", str(file), *arguments]) == 0
    where = "the lake" if place == "lake" else "schema"
    assert capsys.readouterr().out.splitlines()[0] == f"{file}: lost: {where} has no event noSuchEvent yet"
