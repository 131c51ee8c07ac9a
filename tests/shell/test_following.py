"""Looking again and again: rates, marks, what comes and goes; plots; views on a pipe."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable

import attrs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from qmf_shell.modes.executor import Outcome, evaluate, execute
from qmf_shell.objects.counters import is_counter
from qmf_shell.objects.rates import ChangeTracker, RateTracker, counter_growth
from qmf_shell.render.formatting import Formatter
from qmf_shell.render.in_place import cropped, draw_screen
from qmf_shell.render.output_style import OutputStyle
from qmf_shell.render.plot import draw_plot
from qmf_shell.render.text_lines import TextOptions, text_lines
from qmf_shell.results.cells import Instant, WatchedValue
from qmf_shell.results.result import LiveView, Plot, PlotSeries, Result, ResultGroup, Table
from qmf_shell.session.context import Context
from rich.cells import cell_len
from shell.world import NOON, FakeBackend, filesystem, make_output, process

from qmf.errors import DisconnectedError
from qmf.schema import TYPES, Statistic


@pytest.mark.parametrize(
    ("kind", "before", "now", "grown"),
    [
        ("count64", 10, 15, 5),
        ("count64", 10, 10, 0),
        ("count64", 100, 3, 3),
        ("count64", 100, 0, 0),
        ("count64", 100, 60, -40),
        ("count64", 2**64 - 1, 3, 3),
        ("count32", 2**32 - 1, 3, 4),
        ("count32", 2**31, 3, 3),
        ("count8", 250, 4, 10),
        ("count8", 100, 4, 4),
    ],
)
def test_growth(kind: str, before: int, now: int, grown: int) -> None:
    assert counter_growth(TYPES[kind], before, now) == grown


def test_rates() -> None:
    rates = RateTracker()
    kind = TYPES["count64"]

    def take(value: object, at: float, epoch: int = 1) -> float | None:
        return rates.update("x", kind, value, at, epoch)

    assert take(100, 10) is None
    assert take(150, 20) == 5
    assert take(150, 20) == 5  # no time has passed
    assert take(150, 30) == 0
    assert take(10, 40) == 1  # began anew
    assert take(8, 50) == -0.2  # taken down
    assert take(1000, 60, epoch=2) == 100  # another life of the agent: it counted from zero
    assert take(None, 70) is None
    assert take(2000, 80) is None
    assert take(True, 90) is None


def statistic(name: str, kind: str, **more: str) -> Statistic:
    return Statistic(name=name, type=TYPES[kind], **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("package", "item", "counter"),
    [
        ("org.example", statistic("in", "count64"), True),
        ("org.example", statistic("depth", "count64", assign="in - out"), False),
        ("org.example", statistic("depth", "uint64"), False),
        ("org.apache.qpid.broker", statistic("msgTotalEnqueues", "uint64"), True),
        ("org.apache.qpid.broker", statistic("msgDepth", "uint64"), False),
        ("org.apache.qpid.broker", statistic("msgDepth", "count64"), False),
        ("org.apache.qpid.broker", statistic("queueCount", "uint64"), False),
        ("org.apache.qpid.broker", statistic("flowStopped", "bool"), False),
        ("org.apache.qpid.broker", statistic("bindingCount", "hilo32"), False),
    ],
)
def test_which_values_are_counters(package: str, item: Statistic, counter: bool) -> None:
    assert is_counter(package, item) is counter


def test_every_number_can_be_taken_for_a_counter(
    context: Context, backend: FakeBackend, clock: Callable[[float], None]
) -> None:
    view = view_of(context, "watch -r /home")
    view.frame()
    clock(10)
    backend.things[0] = filesystem("/home", threshold=70)
    result = view.frame()
    assert followed(result, "threshold").rate == -2
    assert followed(result, "uptime").rate is None
    assert isinstance(plot := view_of(context, "plot -r /home threshold").frame(), Plot)
    assert plot.series[0].name == "threshold per second"


def test_changes() -> None:
    changes = ChangeTracker()
    assert [changes.update("x", value) for value in (1, 1, 2, None, None)] == [False, False, True, True, False]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Seconds that pass when told to."""
    now = [1000.0]

    def step(seconds: float) -> None:
        now[0] += seconds

    for module in ("watch", "top", "plot"):
        monkeypatch.setattr(f"qmf_shell.commands.{module}.time.monotonic", lambda: now[0])
    return step


def view_of(context: Context, line: str) -> LiveView:
    view = evaluate(line, context)
    assert isinstance(view, LiveView)
    return view


def table(result: Result) -> Table:
    assert isinstance(result, Table)
    return result


def followed(result: Result, name: str, column: int = 2) -> WatchedValue:
    cell = next(row[column] for row in table(result).rows if row[1] == name)
    assert isinstance(cell, WatchedValue)
    return cell


def test_watch_an_object(context: Context, backend: FakeBackend, clock: Callable[[float], None]) -> None:
    view = view_of(context, "watch -n 5 -c 7 /home")
    assert (view.interval, view.count) == (5, 7)
    first = view.frame()
    assert followed(first, "bytesRead").rate is None
    assert not followed(first, "bytesRead").changed
    clock(10)
    backend.things[0] = filesystem("/home", bytesRead=1234567 + 500, label="new")
    second = view.frame()
    assert (followed(second, "bytesRead").rate, followed(second, "bytesRead").changed) == (50, True)
    assert followed(second, "label").changed
    assert not followed(second, "threshold").changed
    assert followed(second, "threshold").rate is None
    assert table(second).title == "org.example:filesystem /home"


def test_watch_an_object_that_goes_and_comes_back(
    context: Context, backend: FakeBackend, clock: Callable[[float], None]
) -> None:
    view = view_of(context, "watch /home")
    view.frame()
    gone = backend.things.pop(0)
    clock(2)
    result = table(view.frame())
    assert result.note == "Gone: these are its last values."
    assert result.columns[2].title == "101 (gone)"
    assert any(row[1] == "gone since" for row in result.rows)
    backend.things.append(gone)
    assert table(view.frame()).note is None


def test_watch_a_class(context: Context, backend: FakeBackend, clock: Callable[[float], None]) -> None:
    view = view_of(context, "watch filesystem where threshold > 5 columns bytesRead, threshold")
    assert [column.title for column in table(view.frame()).columns] == ["ID", "Index", "bytesRead", "threshold"]
    clock(1)
    backend.things = [filesystem("/", bytesRead=1234567 + 9), filesystem("/new")]
    result = table(view.frame())
    assert result.note == "new: /new; gone: /home"
    rows = {row[1]: row[2] for row in result.rows}
    cell = rows["/"]
    assert isinstance(cell, WatchedValue)
    assert (cell.changed, cell.rate, cell.counter) == (True, 9.0, True)


def test_watch_a_class_shows_its_first_statistics(context: Context) -> None:
    titles = [column.title for column in table(view_of(context, "watch filesystem").frame()).columns]
    assert titles == ["ID", "Index", "bytesRead", "openFiles", "latency", "uptime"]


def test_top(context: Context, backend: FakeBackend, clock: Callable[[float], None]) -> None:
    view = view_of(context, "top -l 1 filesystem by bytesRead")
    view.frame()
    clock(10)
    backend.things = [filesystem("/home", bytesRead=1234567 + 100), filesystem("/", bytesRead=1234567 + 500)]
    result = table(view.frame())
    assert result.title == "Top of 2 objects by bytesRead per second"
    assert [(row[1], row[2].value) for row in result.rows] == [("/", 50.0)]  # type: ignore[union-attr]
    total = table(view_of(context, "top -t filesystem bytesRead").frame())
    assert [row[1] for row in total.rows] == ["/", "/home"]


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("top filesystem", ["STAT is missing"]),
        ("top filesystem by", ["write a class, by, and a statistic"]),
        ("top filesystem by nosuch", ["no value of filesystem 'nosuch'"]),
        ("plot / label", ["label is not a number", "bytesRead"]),
        ("plot /", ["STAT is missing"]),
        ("plot filesystem threshold", ["'filesystem' names 2 objects: 101 filesystem / and 102 filesystem /home; use"]),
        ("refs process", ["'process' names 2 objects: 101 process 1 and 102 process 4711; use the short id"]),
        ("watch -n x /", ["option -n needs seconds", "'x'"]),
        ("watch -c x /", ["option -c needs a number"]),
        ("watch /nosuch", ["no object '/nosuch'"]),
    ],
)
def test_mistakes(context: Context, line: str, parts: list[str]) -> None:
    output = make_output()
    assert execute(line, context, output.screen) is Outcome.FAILED
    (error,) = output.errors
    for part in parts:
        assert part in error


def test_plot(context: Context, backend: FakeBackend, clock: Callable[[float], None]) -> None:
    view = view_of(context, "plot -s 60 /home threshold bytesRead")
    for n in range(100):
        backend.things[0] = filesystem("/home", threshold=n, bytesRead=1000 * n)
        plot = view.frame()
        clock(1)
    assert isinstance(plot, Plot)
    threshold, rate = plot.series
    assert len(threshold.points) == 61
    assert threshold.points[-1][1] == 99
    assert rate.name == "bytesRead per second"
    assert rate.points[-1][1] == 1000
    backend.things.clear()
    gone = view.frame()
    assert isinstance(gone, Plot)
    assert gone.note == "filesystem /home is gone"
    assert gone.series[0].points[-1][1] is None


def test_pictures_are_cropped_to_the_screen(context: Context, backend: FakeBackend) -> None:
    backend.things = [filesystem(f"/{number}") for number in range(500)]
    frame = view_of(context, "watch filesystem").frame()
    small, left = cropped(frame, 20)
    assert isinstance(small, Table)
    assert (len(small.rows), left) == (20, 480)
    both, left = cropped(ResultGroup((frame, frame)), 20)
    assert isinstance(both, ResultGroup)
    assert left == 960
    out = io.StringIO()
    draw_screen(out, list(text_lines(small, TextOptions(formatter=Formatter()))), "now", (80, 20), 480)
    assert "... 485 more lines" in out.getvalue()


def test_a_class_with_one_object_stands_for_it(context: Context, backend: FakeBackend) -> None:
    backend.things = [process(7), filesystem("/")]
    assert isinstance(view_of(context, "plot filesystem threshold").frame(), Plot)


def picture(series: list[PlotSeries], width: int = 40, height: int = 12, *, braille: bool = True) -> list[str]:
    plot = Plot(tuple(series), "101 filesystem /", Instant(NOON))
    return [
        "".join(piece.text for piece in row) for row in draw_plot(plot, Formatter(), width, height, braille=braille)
    ]


def test_a_rising_line_rises() -> None:
    text_lines = picture([PlotSeries("depth", tuple((float(n), float(n)) for n in range(100)), 99)], braille=False)
    assert text_lines[0] == "101 filesystem /"
    columns = [line.find("*") for line in text_lines[1:10]]
    assert columns == sorted(columns, reverse=True)
    assert text_lines[1].split()[0] == "100"
    assert text_lines[9].split()[0] == "0"
    assert text_lines[10].split() == ["-1m", "39s", "now"]
    assert text_lines[11] == "** depth  99"


@pytest.mark.parametrize("width", [20, 40, 100])
@pytest.mark.parametrize("height", [4, 12, 30])
def test_plots_fit(width: int, height: int) -> None:
    series = [PlotSeries(f"s{k}", tuple((float(n), float(n * k)) for n in range(50)), k) for k in range(3)]
    text_lines = picture(series, width, height)
    assert len(text_lines) <= max(height, 9)
    assert all(cell_len(line) <= width for line in text_lines), text_lines


@example([0.0, 5e-324], False)
@given(
    st.lists(
        st.one_of(st.none(), st.floats(width=32), st.floats(-1, 1), st.integers(0, 2**64).map(float)), max_size=30
    ),
    st.booleans(),
)
def test_any_values_can_be_drawn(values: list[float | None], braille: bool) -> None:
    text_lines = picture([PlotSeries("x", tuple((float(n), value) for n, value in enumerate(values)))], braille=braille)
    assert len(text_lines) == 12
    if not braille:
        assert all(line.isascii() for line in text_lines)


def test_views_without_a_terminal_follow_each_other(context: Context, backend: FakeBackend) -> None:
    output = make_output()
    assert execute("watch -n 0.1 -c 2 filesystem columns threshold", context, output.screen) is Outcome.DONE
    assert [line for line in output.lines if line.startswith("org.")] == ["org.example:filesystem, 2 objects"] * 2
    output = make_output(OutputStyle.JSON)
    assert execute("watch -n 0.1 -c 2 / ", context, output.screen) is Outcome.DONE
    rows = [json.loads(line) for line in output.lines]
    assert len(rows) == 2
    (counter,) = (row["101"] for row in rows[1] if row["element"] == "bytesRead")
    assert counter == {"value": 1234567, "rate": 0.0}
    output = make_output(OutputStyle.CSV)
    assert execute("plot -n 0.1 -c 2 / threshold", context, output.screen) is Outcome.DONE
    assert output.lines[0] == "time,threshold"
    assert [line.split(",")[1] for line in output.lines[1:]] == ["90.0", "90.0"]


def test_changed_values_are_marked_without_colour(context: Context, backend: FakeBackend) -> None:
    view = view_of(context, "watch /home")
    view.frame()
    backend.things[0] = filesystem("/home", threshold=75)
    frame = view.frame()
    plain, colour = make_output(), make_output(OutputStyle.COLOUR, 100)
    plain.screen.show(frame)
    colour.screen.show(frame)
    assert any(re.search(r"threshold +75 % \*$", line) for line in plain.lines)
    assert sum(line.endswith("*") for line in plain.lines) == 1
    assert "\x1b[1;30;43m75 % *" in colour.out.getvalue()


def test_a_lost_connection_does_not_end_a_view(context: Context, backend: FakeBackend) -> None:
    output = make_output()
    frames = iter([None, DisconnectedError("amqp://mq1", "closed"), None])
    view = view_of(context, "watch -n 0.1 -c 3 filesystem")

    def frame() -> Result:
        error = next(frames)
        if error is not None:
            raise error
        return view.frame()

    output.screen.show(attrs.evolve(view, frame=frame))
    assert sum(line.startswith("org.") for line in output.lines) == 2
    assert output.errors == ["error: not connected to amqp://mq1: closed"]
