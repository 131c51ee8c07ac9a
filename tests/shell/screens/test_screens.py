"""Tables of live screens without a terminal: what they draw at any size, and what keys do."""

from __future__ import annotations

import attrs
import pytest
from qmf_shell.commands import standard
from qmf_shell.modes.executor import evaluate
from qmf_shell.results.result import LiveScreen
from qmf_shell.session.backend import (
    ConnectionStatus,
)
from qmf_shell.session.context import Context
from shell.fakes import (
    BETA,
    SECOND,
    FakeBackend,
    filesystem,
)
from shell.looked import FORMATTER, Looked

from qmf.console.aio import ChangeKind
from qmf.errors import NotFoundError


def test_a_class_with_the_rates_of_its_counters(context: Context, backend: FakeBackend) -> None:
    looked = Looked(context, "watch -n 1 filesystem")
    assert "org.example:filesystem  2 objects" in looked.lines()[0]
    assert "  /s" in looked.lines()[1]
    first = filesystem("/", bytesRead=1234567)
    backend.records[1] = attrs.evolve(first, updated=first.updated)
    looked.update()
    backend.records[1] = attrs.evolve(filesystem("/", bytesRead=1234567 + 5000), updated=first.updated + 2 * 10**9)
    looked.update()
    assert "2.5 kB" in next(line for line in looked.lines() if " / " in line)
    assert looked.styles("1.24 MB") == "class:changed class:cursor"
    looked.navigator.filter("bytesRead.rate>2k")
    assert "1 shown" in looked.lines()[0]
    looked.navigator.filter("bytesRead.rate>3k")
    assert "0 shown" in looked.lines()[0]
    looked.navigator.filter("threshold.rate>3k")
    assert "threshold is no counter: it has no rate" in looked.lines()[-1]
    looked.navigator.filter("")
    looked.navigator.rates()
    assert "/s" not in looked.lines()[1]
    looked.navigator.rates()
    assert "bytesRead/s" in looked.lines()[1]
    assert "  bytesRead " not in looked.lines()[1]


def test_a_rate_is_unknown_until_two_readings_are_apart(context: Context, backend: FakeBackend) -> None:
    looked = Looked(context, "watch filesystem columns bytesRead")

    def rates() -> list[str]:
        return [line.partition(" MB")[2].strip() for line in looked.rows()]

    listed = backend.records[1]
    backend.records[1] = attrs.evolve(listed, updated=listed.updated + SECOND // 100)
    assert rates() == ["-", "-"]
    looked.update()
    assert rates() == ["-", "-"]
    backend.records[1] = attrs.evolve(listed, updated=listed.updated + 2 * SECOND)
    looked.update()
    assert rates() == ["0 B", "-"]
    values = {**listed.values, "bytesRead": 1234567 + 5000}
    backend.records[1] = attrs.evolve(listed, values=values, updated=listed.updated + 4 * SECOND)
    looked.update()
    assert rates() == ["2.5 kB", "-"]


def test_every_size_can_be_drawn(context: Context) -> None:
    looked = Looked(context, "watch filesystem")
    for width in (1, 2, 5, 10, 20, 40, 80, 200):
        for height in (1, 2, 3, 4, 5, 6, 10, 24, 50):
            for colour in (True, False):
                assert len(looked.lines(width, height, colour=colour)) <= height


def test_sorting_filtering_and_conditions(context: Context, backend: FakeBackend) -> None:
    backend.records += [filesystem(f"/srv/{number}", threshold=number) for number in range(1, 6)]
    looked = Looked(context, "watch filesystem columns threshold sort threshold desc")
    assert "by threshold descending" in looked.lines()[0]
    looked.navigator.filter("srv")
    assert "/srv: 5 shown" in looked.lines(160)[0]
    looked.navigator.filter("threshold > 3 and index ~ srv")
    assert [line.split()[1] for line in looked.rows()] == ["/srv/5", "/srv/4"]
    looked.navigator.filter("srv -/5 not /4 threshold<4")
    assert [line.split()[1] for line in looked.rows()] == ["/srv/3", "/srv/2", "/srv/1"]
    looked.navigator.filter("nosuch > 3")
    assert "no value of filesystem 'nosuch'" in looked.lines()[-1]
    looked.navigator.filter("threshold >")
    assert looked.navigator.message
    assert looked.navigator.back()
    assert looked.navigator.page.model.filter == ""
    looked.navigator.filter("zzz")
    assert "Nothing matches 'zzz'." in looked.text


def test_what_hides_rows_is_said_at_any_width(context: Context) -> None:
    looked = Looked(context, "watch")
    looked.navigator.filter("filesystem")
    assert " classes  /filesystem: 1 shown" in looked.lines(60)[0]
    looked.navigator.open()
    looked.update()
    looked.navigator.filter("threshold > 3 and index ~ home")
    looked.navigator.page.own_left_out = 12
    assert "/threshold > 3 and index ~ home: 1 shown" in looked.lines(80)[0]
    assert looked.lines(80)[0].startswith(" org.exa")
    assert ": 1 shown" in looked.lines(40)[0]
    assert "12:00:00" in looked.lines(100)[0]
    looked.navigator.open()
    looked.update()
    for width in range(1, 60):
        looked.lines(width, 5)
        looked.lines(width, 6)


def test_deleted_lost_and_new_objects_are_marked(context: Context, backend: FakeBackend) -> None:
    looked = Looked(context, "watch filesystem")
    looked.update()
    gone = backend.records.pop(0)
    backend.records.append(filesystem("/new", BETA))
    looked.update()
    assert "2 objects, 1 gone" in looked.lines()[0]
    assert any("/home" in line and "deleted" in line for line in looked.lines(160))
    assert looked.styles("/new") == "class:new"
    backend.records.append(gone)
    looked.update()
    assert "deleted" not in looked.text
    backend.feeds[0].kind = ChangeKind.LOST
    backend.records.remove(gone)
    looked.update()
    assert any("/home" in line and "lost" in line for line in looked.lines(160))
    assert looked.styles("/home") == "class:lost"
    looked.navigator.page.clear_gone()
    assert "/home" not in looked.text


def test_objects_that_no_longer_match_leave(context: Context, backend: FakeBackend) -> None:
    looked = Looked(context, "watch filesystem where agent ~ alpha and threshold > 50.5")
    assert "/home" in looked.text
    backend.records[0] = filesystem("/home", threshold=1)
    looked.update()
    assert "/home" not in looked.text


def test_pause_keeps_what_is_shown(context: Context, backend: FakeBackend) -> None:
    looked = Looked(context, "watch filesystem columns threshold")
    looked.navigator.toggle()
    backend.records[0] = filesystem("/home", threshold=11)
    looked.update()
    assert " 11 " not in looked.text
    assert "PAUSED" in looked.navigator.right(FORMATTER)
    looked.navigator.pause()
    assert "11 %" in looked.text


def test_a_page_that_is_opened_while_paused_is_loaded(context: Context) -> None:
    looked = Looked(context, "watch filesystem")
    looked.navigator.pause()
    loads = [looked.navigator.loads]
    looked.navigator.open()
    loads.append(looked.navigator.loads)
    looked.update()
    assert "loading" not in looked.text
    assert "threshold" in looked.text
    assert [*loads, looked.navigator.loads] == [False, True, False]


def test_a_lost_connection_and_errors_are_shown(context: Context, backend: FakeBackend) -> None:
    looked = Looked(context, "watch filesystem")
    looked.update()
    backend.status = ConnectionStatus("amqp://127.0.0.1:5672", connected=False, reason="connection refused")
    assert "no connection to amqp://127.0.0.1:5672: connection refused; it is retried; values of" in looked.lines()[-1]
    assert "/home" in looked.text
    backend.status = ConnectionStatus("amqp://127.0.0.1:5672")
    backend.error = RuntimeError("broken")
    looked.update()
    assert "internal error: RuntimeError: broken" in looked.lines()[-1]
    backend.error = None
    looked.update()
    assert "q leave" in looked.lines()[-1]


def test_thresholds_colour_values(context: Context, backend: FakeBackend) -> None:
    looked = Looked(context, "watch filesystem columns openFiles")
    assert looked.navigator.threshold_column is None
    looked.navigator.page.model.sort_by("openFiles")
    looked.navigator.set_thresholds("5 10")
    assert looked.navigator.message == "openFiles: 5 and 10"
    assert looked.styles("12") == "class:cursor class:critical"
    assert "12!!" in "\n".join(looked.lines(colour=False))
    looked.navigator.set_thresholds("20 15")
    assert "class:critical" in looked.styles("12")
    looked.navigator.set_thresholds("10 1k")
    assert "class:warning" in looked.styles("12")
    looked.navigator.set_thresholds("x")
    assert "is not one number or two" in looked.navigator.message
    looked.navigator.set_thresholds("")
    assert looked.styles("12").strip() == "class:cursor"


def test_columns_are_chosen(context: Context) -> None:
    looked = Looked(context, "watch filesystem")
    looked.navigator.choose_columns()
    assert "columns of org.example:filesystem" in looked.lines()[0]
    looked.navigator.filter("uptime")
    looked.navigator.toggle()
    looked.navigator.open()
    looked.navigator.back()
    assert "uptime" not in "\n".join(looked.lines(200))
    assert "uptime" not in context.columns.names(("org.example", "filesystem"))
    looked.navigator.choose_sort()
    looked.navigator.filter("bytesRead")
    looked.navigator.open()
    looked.navigator.back()
    assert looked.navigator.page.model.sort == "bytesRead"


def test_an_object_is_opened_and_left(context: Context, backend: FakeBackend) -> None:
    looked = Looked(context, "watch filesystem")
    looked.navigator.open()
    looked.update()
    assert looked.lines()[0].startswith(" org.example:filesystem > filesystem /")
    assert any(line.startswith("bytesRead") and "1.23 MB" in line for line in looked.lines())
    backend.records = []
    looked.update()
    assert "it is gone since" in looked.lines()[-1]
    assert looked.navigator.back()
    assert not looked.navigator.back()
    looked.navigator.close()
    assert backend.feeds[0].closed


def test_help_is_shown_and_left(context: Context) -> None:
    looked = Looked(context, "watch filesystem")
    looked.navigator.help()
    assert "Up Down j k" in looked.text
    looked.navigator.open()
    assert "filesystem" in looked.lines()[0]


def test_what_was_on_the_screen_is_left_as_a_table(context: Context) -> None:
    looked = Looked(context, "watch filesystem columns threshold")
    looked.navigator.help()
    page = looked.navigator.last_page
    result = page.result(page.model.window(1)[1])
    assert (result.title, len(result.rows), result.note) == ("org.example:filesystem, 2 objects", 1, "1 more")  # type: ignore[union-attr]


@pytest.mark.parametrize("words", ["where nosuch > 1", "sort nosuch", "columns nosuch"])
def test_mistakes_are_found_before_the_terminal_changes(context: Context, words: str) -> None:
    with pytest.raises(NotFoundError, match="no value of filesystem 'nosuch'"):
        evaluate(f"watch filesystem {words}", context)


@pytest.mark.parametrize("option", ["-p", "-c 3"])
def test_lines_are_for_those_who_want_them(option: str) -> None:
    context = Context(FakeBackend([filesystem("/")]), standard())
    assert not isinstance(evaluate(f"watch {option} filesystem", context), LiveScreen)
