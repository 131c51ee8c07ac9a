"""`events`."""

from __future__ import annotations

import json
import threading

import attrs
import pytest
from qmf_shell.modes.executor import LineOutcome, evaluate, execute
from qmf_shell.render.styles import OutputStyle
from qmf_shell.results.result import Result, ResultStream
from qmf_shell.session.context import Context
from shell.fakes import ALPHA, BETA, NOON, full_event, make_output
from shell.line_runner import failure, printed, run

from qmf.views.events import LostEvents


def test_events(context: Context) -> None:
    assert printed(context, "events") == [
        "No events since this session began; `events -w SECONDS` waits for them, `events -f` follows them."
    ]
    for n in range(25):
        context.events.add(full_event(f"/{n}", severity=n % 9))
    lines = printed(context, "events")
    assert lines[0] == "20 events"
    assert lines[1].split() == ["Time", "Severity", "Event", "Arguments", "Agent"]
    assert lines[3].split()[:4] == ["2024-05-01", "12:00:00", "notice", "filesystemFull"]
    assert lines[6].split()[2] == "8"
    assert "mountPoint=/24 size=2,048 B" in lines[-2]
    assert lines[-1] == "5 earlier ones; events -n 0 shows all"
    assert len(printed(context, "events -n 0")) == 28
    assert len(printed(context, "events -n 3 FILESYSTEMFULL")) == 7


def test_follow_prints_new_events_of_the_class(context: Context) -> None:
    context.events.add(full_event("/before"))
    stream = evaluate("events -f -p filesystemfull", context)
    assert isinstance(stream, ResultStream)
    got: list[Result] = []
    reader = threading.Thread(target=lambda: got.append(next(stream.items)), daemon=True)
    reader.start()
    # The waiting of the reader cannot be observed, so events are added until it has one.
    while not got:
        context.events.add(full_event("/after"))
        reader.join(0.01)
    assert "/after" in str(got[0])


def test_events_are_waited_for(context: Context) -> None:
    context.events.add(full_event("/before"))
    printer: list[list[str]] = []
    reader = threading.Thread(target=lambda: printer.append(printed(context, "events -w 3600 -n 3 filesystemfull")))
    reader.start()
    context.events.add(attrs.evolve(full_event("/other"), name="org.example:other"))
    context.events.add(full_event("/second"))
    reader.join(0.05)
    assert reader.is_alive()
    context.events.add(full_event("/third"))
    reader.join(30)
    (lines,) = printer
    assert [line.split()[4] for line in lines[3:]] == ["mountPoint=/before", "mountPoint=/second", "mountPoint=/third"]
    assert printed(context, "events -w 0.1 -n 9 -s emerg")[0].startswith("No such events since this session began; ")
    assert "from 0.1 to 86400" in failure(context, "events -w no")
    assert "write no from and to" in failure(context, "events -w 3 from 2024-05-01")


def test_an_event_is_one_line(context: Context) -> None:
    name = f"qmf-{'0123456789-' * 6}end"
    values = {"rhost": "qpid.127.0.0.1:5672-127.0.0.1:60528", "user": "ops", "qName": name, "altEx": "", "args": {}}
    event = attrs.evolve(full_event(), name="org.apache.qpid.broker:queueDeclare", values=values, schema=None)
    context.events.add(event)
    context.events.add(full_event("/short"))
    output = make_output(width=80)
    context.settings = output.screen.settings
    assert execute("events", context, output.screen) is LineOutcome.DONE
    assert len(output.lines) == 5
    assert all(len(line) <= 80 for line in output.lines)
    assert "qName=qmf-012" in output.lines[3]
    assert "altEx" not in output.lines[3]
    assert "mountPoint=/short" in output.lines[4]
    whole = " ".join(printed(context, "events -l"))
    assert name in whole
    assert 'altEx=""' in whole


def test_events_filters(context: Context) -> None:
    from shell.fakes import full_event

    for n in range(8):
        context.events.add(full_event(f"/{n}", severity=n, agent=f"example.org:host:{'ab'[n % 2]}"))

    def shown(line: str) -> list[str]:
        rows = [json.loads(one) for one in run(context, line, style=OutputStyle.JSON).lines]
        return [row["arguments"]["mountPoint"] for row in rows]

    assert shown("events -s error") == ["/0", "/1", "/2", "/3"]
    assert shown("events -a host:b -n 2") == ["/5", "/7"]
    assert shown("events filesystemFull where mountPoint ~ '[12]'") == ["/1", "/2"]
    assert shown("events where severity < error and severity > notice") == ["/4"]
    assert shown("events where size > 2000 and not mountPoint = /0 and severity = 1") == ["/1"]
    assert "no severity 'loud'" in failure(context, "events -s loud")
    assert "is not a regular expression" in failure(context, "events where a ~ '['")
    assert shown("events where /3 severity=3") == ["/3"]
    assert shown("events where host:b filesystemFULL not /1 severity<=warn not /7") == ["/5"]
    assert "')' in column 20 does not belong" in failure(context, "events where a = 1 )")
    assert "no severity 'loud'" in failure(context, "events where severity > loud")


def test_events_that_did_not_arrive_are_shown_where_they_are_missing(context: Context) -> None:
    context.events.add(full_event("/1"))
    context.events.add(full_event("/2"))
    context.events.add(LostEvents(ALPHA, 12, NOON))
    context.events.add(full_event("/3"))
    lines = printed(context, "events -n 2 -s warn filesystemFull where size > 0")
    assert lines[0] == "2 events, 12 did not arrive"
    assert [line.split()[2:5] for line in lines[3:6]] == [
        ["warn", "filesystemFull", "mountPoint=/2"],
        ["warn", "qmf:lost", "12"],
        ["warn", "filesystemFull", "mountPoint=/3"],
    ]
    assert f"12 events of agent {ALPHA} did not arrive" in lines[4]
    assert lines[6] == "1 earlier one; events -n 0 shows all"
    assert printed(context, "events -n 1")[0] == "1 event, 12 did not arrive"
    assert "did not arrive" not in "".join(printed(context, f"events -a {BETA}"))
    assert context.events.count(everything=True) == 3
    coloured = run(context, "events", style=OutputStyle.COLOUR).lines
    painted = [next(line for line in coloured if word in line) for word in ("mountPoint=/3", "qmf:lost")]
    before = [line.partition("warn")[0] for line in painted]
    assert before[0] == before[1]
    assert "\x1b[" in before[1]


def test_programs_get_a_record_of_events_that_did_not_arrive(context: Context) -> None:
    context.events.add(LostEvents(ALPHA, 12, NOON))
    context.events.add(full_event("/1"))
    lost, event = [json.loads(line) for line in run(context, "events", style=OutputStyle.JSON).lines]
    assert {name: lost[name] for name in ("severity", "event", "arguments", "agent")} == {
        "severity": "warn",
        "event": "qmf:lost",
        "arguments": {"count": 12},
        "agent": ALPHA,
    }
    assert event["arguments"]["mountPoint"] == "/1"
    assert lost.keys() == event.keys()


@pytest.mark.parametrize(
    ("style", "part"),
    [
        (OutputStyle.PLAIN, f"qmf:lost  12 events of agent {ALPHA} did not arrive"),
        (OutputStyle.JSON, '"event": "qmf:lost", "arguments": {"count": 12}'),
        (OutputStyle.CSV, 'qmf:lost,"{""count"": 12}"'),
    ],
)
def test_followers_see_events_that_did_not_arrive(context: Context, style: OutputStyle, part: str) -> None:
    stream = evaluate("events -f -p", context)
    assert isinstance(stream, ResultStream)
    got: list[Result] = []
    reader = threading.Thread(target=lambda: got.append(next(stream.items)), daemon=True)
    reader.start()
    while not got:
        context.events.add(LostEvents(ALPHA, 12, NOON))
        reader.join(0.01)
    output = make_output(style)
    context.settings = output.screen.settings
    output.screen.show(got[0])
    assert part in "\n".join(output.lines)


def test_events_that_did_not_arrive_are_not_those_that_are_waited_for(context: Context) -> None:
    context.events.add(LostEvents(ALPHA, 12, NOON))
    assert printed(context, "events -w 0.1 -n 1")[0] == "0 events, 12 did not arrive"
