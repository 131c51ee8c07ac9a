"""Correlation as a stream: it finds what a batch finds."""

from __future__ import annotations

import fcntl
import random
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pipeline.correlation import FOUND, UnsteadyShop, act, batch, fill, ignore, options, short
from pipeline.lakes import SECOND, Shop

from qmf.pipeline import LakeError
from qmf.pipeline.correlate import RuleError, parse_rules
from qmf.pipeline.correlate.alert_table import alerts
from qmf.pipeline.correlate.alerts import AlertRow, in_order
from qmf.pipeline.correlate.batch_input import CorrelateOptions
from qmf.pipeline.correlate.rule_file import RuleWatch
from qmf.pipeline.correlate.stream import CorrelationStream
from qmf.pipeline.correlate.stream_state import StreamState, read_failures
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.waiting import WAITING, Note, followed_tables

pytestmark = pytest.mark.slow


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "lake")


def steps(of: CorrelateOptions) -> tuple[list[AlertRow], int, int]:
    """The alerts of all steps that are due, the number of rows that came too late, and the horizon."""
    found: list[AlertRow] = []
    too_late = 0
    # A new stream, as after a kill.
    stream = CorrelationStream(of, ignore)
    while (step := stream.step()) is not None:
        found += step.alerts
        too_late += step.counts.too_late
    stream.close()
    return found, too_late, stream.progress.begin


def table(of: CorrelateOptions) -> list[dict[str, Any]]:
    """The rows of the table, by time."""
    found = alerts(of.out)
    return [] if found is None else list(found.to_pylist())


def combine(shop: Shop) -> None:
    """Combine the files of all tables, as maintenance does."""
    for path in shop.lake.paths():
        shop.lake.table(path).delta().optimize.compact()


def test_unknown_classes_are_reported_once(shop: Shop) -> None:
    text = '[r]\nkind = "threshold"\nclass = "till"\nvalue = "queue"\nabove = 1\n'
    shop.beat(0, 1)
    lines: list[str] = []
    stream = CorrelationStream(options(shop, text), lines.append)
    assert stream.step() is None
    shop.put((10, 1), (20, 1), queue=2)
    step = stream.step()
    assert lines == ["r: the lake has no class till yet"]
    assert step is not None
    assert [item.at_ns for item in step.alerts] == [10 * SECOND]
    stream.close()


@pytest.mark.parametrize("_time", range(3))
def test_a_stream_in_random_steps_finds_what_a_batch_finds(tmp_path: Path, _time: int) -> None:
    compare_with_batch(tmp_path / "lake", random.randrange(10_000))  # pytest-randomly prints the seed


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100))
def test_a_stream_in_many_random_steps_finds_what_a_batch_finds(tmp_path: Path, seed: int) -> None:
    compare_with_batch(tmp_path / "lake", seed)


def compare_with_batch(root: Path, seed: int) -> None:
    """Compare the alerts of a stream, which is started three times while a lake grows at random, with a batch's."""
    chance = random.Random(seed)
    shop = UnsteadyShop(root, chance)
    of = options(shop)
    found: list[AlertRow] = []
    at, end = 1000.0, 0
    for _ in range(3):
        for _ in range(chance.randrange(20, 80)):
            at += chance.choice([1, 1, 2, 5, 20])
            act(shop, at)
        if chance.random() < 0.5:
            shop.flush()
        if chance.random() < 0.3:
            shop.flush()
            combine(shop)
        more, too_late, end = steps(of)
        found += more
        assert too_late == 0
    assert len(found) > 3
    whole = batch(of, until=end / SECOND).alerts
    assert in_order(found) == whole
    assert len(table(of)) == len(found)


def test_a_table_that_is_new_is_read_though_its_agent_has_a_wrong_clock(shop: Shop) -> None:
    of = options(shop, '[silent]\nkind = "absence"\nof = "heartbeats"\nfor = "30s"\n')
    shop.beat(1000)
    shop.agent(1010, "added")
    steps(of)
    for at, reason in ((1010, "disconnected"), (1020, "connected again")):
        cells = (reason, "", 0, None)
        shop.add(RowKind.GAPS, at - 500, cells, received=at)
        shop.commit()
    shop.agent(1100, "added", agent="b")
    found, _, end = steps(of)
    assert short(found) == [("silent", "raised", "a", 1000, 1050)]
    assert found == batch(of, until=end / SECOND).alerts


class Killed(Exception):
    """Stands for a kill of the process."""


@pytest.mark.parametrize("moment", ["before the commit", "before the table", "after the table"])
def test_a_step_that_was_killed_is_done_again_or_not_at_all(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    of = options(shop)
    shop.put((0, 0), (10, 0), (100, 0), queue=6, name="one")
    whole = StreamState.publish

    def commit(self: StreamState, *_: object) -> None:
        raise Killed

    def publish(self: StreamState) -> None:
        if moment == "after the table":
            whole(self)
        raise Killed

    stream = CorrelationStream(of, ignore)
    with monkeypatch.context() as patch:
        if moment == "before the commit":
            patch.setattr(StreamState, "commit", commit)
        else:
            patch.setattr(StreamState, "publish", publish)
        with pytest.raises(Killed):
            stream.step()
    stream.close()
    shop.put((200, 0), queue=0, name="one")
    found, _, _ = steps(of)
    busy = [item.change for item in found if item.rule == "busy"]
    assert busy == (["raised"] if moment == "before the commit" else [])
    shop.put((300, 0), queue=0, name="one")
    steps(of)
    assert [(row["change"], row["at_ns"] // SECOND) for row in table(of) if row["rule"] == "busy"] == [
        ("raised", 10),
        ("cleared", 200),
    ]


def test_rows_that_enter_the_lake_too_late_count_as_of_now_or_are_dropped(shop: Shop) -> None:
    of = options(shop, '[r]\nkind = "threshold"\nclass = "till"\nvalue = "queue"\nbelow = 5')
    other = Shop(Path(shop.root), run="00000000000000000002_1", name="other")
    shop.put((0, 0), (100, 0), queue=6, name="one")
    _, _, end = steps(of)
    other.put((50, 0), queue=0, name="one")
    found, too_late, _ = steps(of)
    assert (found, too_late) == ([], 1)
    other.put((90, 0), queue=0, name="one")
    (raised,), too_late, _ = steps(of)
    assert (raised.at_ns, too_late) == (end, 0)


def test_a_changed_rule_clears_its_alerts(shop: Shop) -> None:
    text = '[r]\nkind = "threshold"\nclass = "till"\nvalue = "queue"\nabove = '
    shop.put((0, 0), (100, 0), queue=6, name="one")
    (raised,), _, _ = steps(options(shop, text + "5"))
    (cleared,), _, end = steps(options(shop, text + "7"))
    assert (cleared.alert_id, cleared.change, cleared.reason) == (
        raised.alert_id, "cleared", "the rule was changed or removed",
    )  # fmt: skip
    assert (cleared.at_ns, cleared.rule_hash, cleared.message) == (end, raised.rule_hash, raised.message)
    assert steps(options(shop, text + "7"))[0] == []


def test_time_advances_while_a_recorder_has_nothing_to_write(shop: Shop) -> None:
    of = options(shop, '[silent]\nkind = "absence"\nof = "heartbeats"\nfor = "30s"')
    start = time.time()
    shop.beat(start - 1, start)
    shift = 0
    stream = CorrelationStream(of, ignore, clock=lambda: time.time_ns() + shift)
    assert stream.step() is None  # what came last waits for what may come late
    shift = 120 * SECOND
    assert stream.step() is None  # without a recorder, time doesn't advance
    path = Path(shop.root) / "_pending" / "shop" / "lock"
    path.parent.mkdir(parents=True)
    lock = path.open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    step = stream.step()
    assert step is not None
    (alert,) = step.alerts
    assert alert.at_ns == round(start * SECOND) + 30 * SECOND
    lock.close()
    stream.close()


def test_days_without_a_recorder_raise_no_alert(shop: Shop) -> None:
    of = options(shop, '[silent]\nkind = "absence"\nof = "heartbeats"\nfor = "30s"')
    later = Shop(Path(shop.root), run="00000000000000000002_1")
    shop.beat(0)
    first, _, _ = steps(of)
    day = 86_400.0
    later.beat(9 * day, 9 * day + 20, 9 * day + 40, agent="b")
    second, _, end = steps(of)
    found = [(item.subject, item.at_ns // SECOND) for item in first + second]
    assert found == [("a", 9 * day + 30)]
    assert batch(of, until=end / SECOND).alerts == second


def test_only_one_process_follows_into_a_folder(shop: Shop) -> None:
    stream = CorrelationStream(options(shop), ignore)
    with pytest.raises(LakeError, match="another process follows"):
        CorrelationStream(options(shop), ignore)
    stream.close()


def test_a_stream_begins_with_rows_that_were_moved(shop: Shop) -> None:
    fill(shop)
    combine(shop)
    shop.put((200, 300), queue=0, name="one")
    of = options(shop)
    found, _, end = steps(of)
    assert in_order(found) == batch(of, until=end / SECOND).alerts
    assert short(found)[:2] == FOUND[:2]


def test_rules_without_a_known_class_end_in_no_alert_and_no_error(shop: Shop) -> None:
    of = options(shop, '[r]\nkind = "threshold"\nclass = "shelf"\nvalue = "x"\nabove = 1\n')
    shop.beat(0, 1)
    assert batch(of).alerts == []
    assert steps(of)[0] == []


def test_a_stream_waits_for_a_lake(tmp_path: Path) -> None:
    rules = parse_rules('[r]\nkind = "threshold"\nclass = "till"\nvalue = "queue"\nabove = 1\n')
    stream = CorrelationStream(CorrelateOptions(lake=f"{tmp_path}/lake", out=f"{tmp_path}/out", rules=rules), ignore)
    assert stream.step() is None
    Shop(tmp_path / "lake").put((10, 1), queue=2)
    step = stream.step()
    assert step is not None
    assert [item.change for item in step.alerts] == ["raised"]
    stream.close()


def test_a_rule_that_does_not_fit_a_new_class_is_left_out(shop: Shop) -> None:
    text = '[{}]\nkind = "threshold"\nclass = "till"\nvalue = "{}"\nabove = 1\n'
    lines: list[str] = []
    stream = CorrelationStream(options(shop, text.format("bad", "quue") + text.format("good", "queue")), lines.append)
    assert stream.step() is None
    shop.put((10, 1), (20, 1), queue=2)
    step = stream.step()
    assert step is not None
    assert [item.rule for item in step.alerts] == ["good"]
    assert lines[-1] == "rules.toml:4: bad: value: 'quue': the class has no 'quue'; did you mean 'queue'?"
    stream.close()


def test_a_rule_that_fails_does_not_stop_the_others_nor_a_restart(shop: Shop) -> None:
    text = '[{}]\nkind = "threshold"\nclass = "till"\nvalue = "queue"\nabove = 1\n{}'
    shop.put((0, 1), queue=2, name="one")
    wrong = text.format("bad", "where = \"queue = 'many'\"\n")
    huge = text.format("huge", 'where = "queue * 4 > 1"\n')
    of = options(shop, wrong + huge + text.format("good", ""), late=0)
    for queue, raised in ((2, ["good", "huge"]), (1 << 62, [])):
        shop.put((queue % 7 + 10, 1), queue=queue, name="one")
        lines: list[str] = []
        stream = CorrelationStream(of, lines.append)
        step = stream.step()
        stream.close()
        assert step is not None
        assert sorted(item.rule for item in step.alerts) == raised
        assert "Could not convert string 'many' to INT64" in lines[0]
    assert "Overflow in multiplication" in lines[1]
    assert read_failures(Path(of.out)) == tuple(lines)


def test_no_time_passes_for_an_absence_rule_that_is_left_out(shop: Shop) -> None:
    text = '[{}]\nkind = "absent"\nof = "samples"\nclass = "till"\nfor = "10s"\nwhere = "{}"\n'
    shop.put((0, 1), (100, 2), queue=2)
    found, _, _ = steps(options(shop, text.format("bad", "queue = 'many'") + text.format("good", "queue > 5"), late=0))
    assert [item.rule for item in found] == ["good"]


def test_all_rows_count_at_once_where_nothing_may_be_late(shop: Shop) -> None:
    shop.put((0, 0), (10, 0), queue=6, name="one", received=11)
    found, _, end = steps(options(shop, late=0))
    assert end == 11 * SECOND + 1
    assert [(item.rule, item.at_ns // SECOND) for item in found] == []
    shop.put((21, 0), queue=6, name="one")
    found, _, _ = steps(options(shop, late=0))
    assert [(item.rule, item.change, item.at_ns // SECOND) for item in found] == [("busy", "raised", 21)]


def test_alerts_of_an_agent_that_said_goodbye_end(shop: Shop) -> None:
    of = options(shop, '[r]\nkind = "threshold"\nclass = "till"\nvalue = "queue"\nabove = 5', late=0)
    shop.put((10, 0), queue=6, name="one")
    shop.put((10, 0), queue=6, name="two", agent="b")
    assert len(steps(of)[0]) == 2
    shop.agent(20, "removed", reason="goodbye")
    shop.agent(20, "removed", reason="timeout", agent="b")
    found, _, end = steps(of)
    assert [(item.subject, item.change, item.reason) for item in found] == [
        ("a, one", "cleared", "its agent said goodbye")
    ]
    whole = batch(of, until=end / SECOND).alerts
    assert [(item.alert_id, item.change) for item in whole][-1] == (found[0].alert_id, "cleared")
    # It is back.
    shop.put((30, 0), queue=6, name="one", epoch=2)
    assert [(item.subject, item.change) for item in steps(of)[0]] == [("a, one", "raised")]


def test_what_never_was_there_is_absent(shop: Shop) -> None:
    text = """
    [any]
    kind = "absent"
    of = "heartbeats"
    agent = "x*"
    for = "30s"
    [named]
    kind = "absence"
    of = "heartbeats"
    expect = ["a", "missing"]
    for = "30s"
    """
    of = options(shop, text, late=0)
    shop.beat(0, 20, 40)
    found, _, _ = steps(of)
    shop.beat(60)
    shop.beat(70, agent="missing")
    shop.beat(71)
    more, _, end = steps(of)
    assert sorted((item.rule, item.change, item.subject, item.at_ns // SECOND) for item in found + more) == [
        ("any", "raised", "", 30), ("named", "cleared", "missing", 70), ("named", "raised", "missing", 30)
    ]  # fmt: skip
    assert batch(of, until=end / SECOND).alerts == in_order(found + more)


def test_references_are_followed(shop: Shop) -> None:
    text = """
    [r]
    kind = "threshold"
    class = "till"
    value = "queue - nextRef.queue"
    follow = {nextRef = "org.example.shop:till"}
    above = 3
    labels = {next = "{nextRef.name}"}
    message = "{name} has {value:human} more than {nextRef.name}"
    """
    of = options(shop, text, late=0)
    shop.put((0, 0), object="two", queue=1, name="second")
    shop.put((10, 0), object="one", queue=4, name="first", nextRef="two")
    assert steps(of)[0] == []
    shop.put((20, 0), object="one", queue=5, name="first", nextRef="two")
    (raised,), _, _ = steps(of)
    assert raised.message == "first has 4 more than second"
    assert raised.alert().labels["next"] == "second"
    shop.put((30, 0), object="two", queue=4, name="second")
    shop.put((40, 0), object="one", queue=6, name="first", nextRef="two")
    (cleared,), _, end = steps(of)
    assert cleared.cleared
    assert batch(of, until=end / SECOND).alerts == [raised, cleared]


def test_ratios_join_classes_by_what_they_refer_to(shop: Shop) -> None:
    text = """
    [r]
    kind = "ratio"
    dividend = {class = "till", value = "queue", id = "nextRef"}
    divisor = {class = "till", value = "sales"}
    above = 0.5
    """
    of = options(shop, text, late=0)
    shop.put((0, 10), object="two", queue=0)
    shop.put((10, 0), object="one", queue=6, nextRef="two")
    (raised,), _, _ = steps(of)
    assert (raised.subject, raised.value, raised.message) == ("a, one", 0.6, "queue / sales is 60 %, above 50 %")
    shop.put((20, 20), object="two", queue=0)
    (cleared,), _, end = steps(of)
    assert (cleared.change, cleared.reason) == ("cleared", "back at 30 %")
    assert batch(of, until=end / SECOND).alerts == [raised, cleared]


def test_rules_are_replaced_without_a_restart(shop: Shop) -> None:
    text = '[{}]\nkind = "threshold"\nclass = "till"\nvalue = "queue"\nabove = {}\n'
    stream = CorrelationStream(options(shop, text.format("one", 5) + text.format("two", 5), late=0), ignore)
    shop.put((0, 0), (100, 0), queue=6, name="one")
    first = stream.step()
    assert first is not None
    assert len(first.alerts) == 2
    stream.replace_rules(parse_rules(text.format("two", 5) + text.format("one", 3) + text.format("three", 3)))
    second = stream.step()
    assert second is not None
    assert [(item.rule, item.change, item.reason) for item in second.alerts] == [
        ("one", "cleared", "the rule was changed or removed")
    ]
    with pytest.raises(RuleError, match="the class has no 'quue'"):
        stream.replace_rules(parse_rules(text.format("two", 5).replace("queue", "quue")))
    shop.put((200, 0), queue=4, name="one")
    third = stream.step()
    stream.close()
    assert third is not None
    assert sorted((item.rule, item.change) for item in third.alerts) == [
        ("one", "raised"), ("three", "raised"), ("two", "cleared")
    ]  # fmt: skip


def test_a_step_waits_until_a_batch_is_in_all_of_its_tables(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = iter([True, True, False, False])
    monkeypatch.setattr("qmf.pipeline.lake.lake_versions.is_committing", lambda _lake: next(waits, False))
    shop.put((0, 0), queue=6, name="one")
    found, _, _ = steps(options(shop, '[r]\nkind = "threshold"\nclass = "till"\nvalue = "queue"\nabove = 5', late=0))
    assert len(found) == 1
    assert next(waits, None) is None


def test_a_file_of_rules_is_read_again_when_it_changes(tmp_path: Path) -> None:
    text = '[r]\nkind = "count"\nevent = "e"\nwithin = "1m"\nat_least = 2\n'
    file = tmp_path / "rules.toml"
    file.write_text(text)
    lines: list[str] = []
    watch = RuleWatch(str(file), lines.append)
    assert watch.changed_rules() is None
    file.write_text(text + "x = 1\n")
    assert watch.changed_rules() is None
    assert lines == [f"{file}:6: r: x: no such key; the rules that were read before stay"]
    assert watch.changed_rules() is None
    file.write_text(f"{text}[s]{text[3:]}")
    rules = watch.changed_rules()
    assert rules is not None
    assert [rule.name for rule in rules] == ["r", "s"]
    assert watch.changed_rules() is None
    watch.asked = True
    assert watch.changed_rules() == rules


def test_rows_that_a_recorder_held_back_are_not_too_late(shop: Shop) -> None:
    text = '[r]\nkind = "threshold"\nclass = "till"\nvalue = "queue"\nabove = 1\nfor = "20s"\n'
    of = options(shop, text, late=0)
    path = "objects/org.example.shop/till"
    note = Note(DeltaLake(shop.root), WAITING, "recorder")
    shop.put((1000, 0), queue=0)
    with closing(CorrelationStream(of, ignore, clock=lambda: 1500 * SECOND)) as stream:
        stream.step()
        assert followed_tables(shop.lake, 1500 * SECOND) >= {path}
        note.write({"time_ns": 1500 * SECOND, "tables": {path: 1010 * SECOND}})
        shop.beat(*range(1010, 1400, 10))
        stream.step()
        assert stream.progress.begin == 1010 * SECOND
        note.write({"time_ns": 1500 * SECOND, "tables": {}})
        shop.put((1010, 1), (1020, 1), (1040, 1), queue=2)
        step = stream.step()
        assert step is not None
        assert (step.counts.too_late, [row.at_ns for row in step.alerts]) == (0, [1030 * SECOND])
        assert stream.progress.begin > 1300 * SECOND
    assert followed_tables(shop.lake, 1500 * SECOND) == set()
