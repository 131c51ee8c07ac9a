"""Correlation as a batch: known answers for each kind of rule over a lake."""

from __future__ import annotations

import json
import re
from pathlib import Path

import attrs
import pytest
from pipeline.correlation import FOUND, batch, fill, options, short
from pipeline.lakes import SECOND, Shop
from pipeline.shop import TILL

from qmf.models.federation import schema as federation
from qmf.models.forwarding import schema as forwarding
from qmf.pipeline.correlate.alert_table import alerts
from qmf.pipeline.lake.columns import ClassVersion

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "lake")


def test_known_answers_for_every_kind(shop: Shop) -> None:
    fill(shop)
    of = options(shop)
    found = batch(of)
    assert short(found.alerts) == FOUND
    first = next(item for item in found.alerts if item.rule == "busy")
    assert (first.message, first.severity, first.kind, first.agent, first.object) == (
        "one has a queue of 6", 4, "threshold", "a", "one",
    )  # fmt: skip
    assert first.rule_hash == of.rules[0].hash
    assert (first.window_start_ns, first.window_end_ns, first.value) == (0, 10 * SECOND, 6)
    (sample, last) = json.loads(first.evidence)
    assert (sample["time"], sample["value"], sample["name"], sample["limit"]) == (
        "1970-01-01T00:00:00.000000Z", 6, "one", 9,
    )  # fmt: skip
    assert last["time"] == "1970-01-01T00:00:10.000000Z"
    robbery = next(item for item in found.alerts if item.rule == "robbery")
    assert (robbery.message, robbery.severity) == ("one lost 6", 1)
    assert [item["time"][17:19] for item in json.loads(robbery.evidence)] == ["05", "25"]


def test_the_table_is_written_and_a_repeated_batch_is_the_same(shop: Shop) -> None:
    fill(shop)
    of = options(shop)
    first = batch(of)
    assert batch(of).alerts == first.alerts
    table = alerts(of.out, by="batch")
    assert table is not None
    rows = table.to_pylist()
    assert len(rows) == len(FOUND)
    assert {row["alert_id"] for row in rows} == {item.alert_id for item in first.alerts}
    (row,) = [row for row in rows if row["rule"] == "often" and row["change"] == "raised"]
    assert (row["began"].second, row["at"].second, len(json.loads(row["evidence"]))) == (25, 45, 2)
    assert alerts(of.out, by="stream") is None


def test_days_and_patterns_select_rows(shop: Shop) -> None:
    fill(shop)
    text = '[r]\nkind = "threshold"\nclass = "till"\nvalue = "queue"\nabove = 5\n'
    assert len(batch(options(shop, text)).alerts) == 2
    assert batch(options(shop, text, first="1970-01-02")).alerts == []
    assert batch(options(shop, text + 'agent = "b*"')).alerts == []
    assert batch(options(shop, text + 'object = "t?o"')).alerts == []
    assert batch(options(shop, text + "where = \"name = 'two'\"")).alerts == []


WRONG = [
    ('value = "quue"', "rules.toml:5: r: value: 'quue': the class has no 'quue'; did you mean 'queue'?"),
    ('value = "name"', "rules.toml:5: r: value: 'name': is not a number but VARCHAR"),
    ('value = "queue"\nwhere = "queue"', "rules.toml:6: r: where: 'queue': is not a condition but BIGINT"),
    ('value = "nosuch(queue)"', "rules.toml:5: r: value: 'nosuch(queue)': Scalar Function with name"),
    ('value = "queue"\nmessage = "{nme}"', "rules.toml:6: r: message: no class of the rule has a 'nme'"),
    ('value = "queue"\nevidence = ["nme"]', "rules.toml:6: r: evidence: no class of the rule has a 'nme'"),
]


@pytest.mark.parametrize(("keys", "message"), WRONG)
def test_rules_that_do_not_fit_their_class_are_errors(shop: Shop, keys: str, message: str) -> None:
    shop.put((0, 1), queue=1)
    found = batch(options(shop, f'[r]\nkind = "threshold"\nclass = "till"\nabove = 1\n{keys}'))
    assert found.failures[0].startswith(message)


TWO = '[bad]\nkind = "threshold"\nclass = "till"\nvalue = "queue"\nabove = 1\n{}\n[good]{}'
GOOD = '\nkind = "threshold"\nclass = "till"\nvalue = "queue"\nabove = 1\n'


def test_a_rule_that_fails_does_not_stop_the_others(shop: Shop) -> None:
    shop.put((0, 1), (10, 2), queue=2, name="one")
    found = batch(options(shop, TWO.format("where = \"queue = 'many'\"", GOOD), late=0))
    assert [item.rule for item in found.alerts] == ["good"]
    assert found.failures == ("rules.toml:6: bad: where: \"queue = 'many'\": Could not convert string 'many' to INT64",)


def test_a_row_for_which_an_expression_fails_does_not_count(shop: Shop) -> None:
    shop.put((0, 1), queue=2, object="one", name="one")
    shop.put((5, 1), queue=(1 << 62), object="two", name="two")
    text = TWO.format('where = "queue * 4 > 1"\nby = ["queue + queue"]', GOOD)
    found = batch(options(shop, text, late=0))
    assert sorted((item.rule, item.subject) for item in found.alerts) == [
        ("bad", "4"), ("good", "a, one"), ("good", "a, two")
    ]  # fmt: skip
    (failure,) = found.failures
    assert failure.startswith("rules.toml:6: bad: where: 'queue * 4 > 1': Overflow in multiplication of INT64")
    assert failure.endswith("; such rows don't count")


def test_a_rule_about_a_class_of_several_packages_does_not_stop_the_others(shop: Shop) -> None:
    shop.put((0, 1), queue=2)
    shop.put((5, 1), queue=2, table=attrs.evolve(ClassVersion.from_schema(TILL), package="other"))
    text = TWO.format("", GOOD.replace('"till"', f'"{TILL.key.package}:till"'))
    found = batch(options(shop, text, late=0))
    assert {item.rule for item in found.alerts} == {"good"}
    assert [line.partition(": ")[0] for line in found.failures] == ["rules.toml:3"]


def test_the_rules_of_the_examples_about_links_and_relays_over_a_lake(shop: Shop) -> None:
    relay, route = ClassVersion.from_schema(forwarding.RELAY), ClassVersion.from_schema(federation.ROUTE)
    letter = ClassVersion.from_schema(forwarding.DEAD_LETTERED)
    doubt = ClassVersion.from_schema(federation.MESSAGES_IN_DOUBT)
    for at, waiting, state in (
        (0, 0, "Operational"),
        (60, 20_000, "Waiting"),
        (420, 9, "Waiting"),
        (480, 0, "Operational"),
    ):
        shop.put(
            (at, 0), table=relay, object="office", name="office.example", waiting=waiting, state=state,
            lastError="refused",
        )  # fmt: skip
    for at, up in ((0, True), (10, False), (100, True)):
        shop.put(
            (at, 0), table=route, object="out", name="out", up=up, link="out", source="q", target="q", place="hq:5672",
            state="Waiting", lastError="refused", measured=True, behind=0, backlog=0,
        )  # fmt: skip
    shop.events(*((at, {"domain": "office.example", "address": "x@office.example"}) for at in range(10)), table=letter)
    shop.events((20, {"name": "out", "peer": "hq", "count": 3, "reason": "deleted"}), table=doubt)
    shop.beat(0, 500)
    text = (ROOT / "examples" / "rules.toml").read_text(encoding="utf-8")
    names = ("relay-down", "relay-queue-fills", "dead-letters", "route-down", "messages-in-doubt")
    wanted = [
        part
        for part in re.split(r"(?m)^(?=\[[\w-]+\]$)", text)
        if part.startswith(tuple(f"[{name}]" for name in names))
    ]
    assert len(wanted) == len(names)
    found = batch(options(shop, "".join(wanted))).alerts
    assert short([item for item in found if item.change == "raised"]) == [
        ("dead-letters", "raised", "a, office.example", 0, 9),
        ("messages-in-doubt", "raised", "a, out", 20, 20),
        ("relay-down", "raised", "a, office", 60, 360),
        ("relay-queue-fills", "raised", "a, office", 60, 120),
        ("route-down", "raised", "a, out", 10, 70),
    ]
    messages = {item.rule: item.message for item in found if item.change == "raised"}
    assert messages["relay-down"] == "the relay to office.example is Waiting: refused"
    assert messages["relay-queue-fills"] == "20 k messages wait for office.example, whose relay is Waiting"
    assert messages["dead-letters"] == "10 messages to office.example were given up within 1h"
    assert {item.rule for item in found if item.change == "cleared"} >= {
        "relay-down",
        "relay-queue-fills",
        "route-down",
    }
