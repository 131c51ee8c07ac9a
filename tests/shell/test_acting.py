"""Calls of one and of many, questions for what is missing, properties, exports; settings, aliases, recording."""

from __future__ import annotations

import csv
import json
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest
from qmf_shell.commands import standard
from qmf_shell.modes.executor import Outcome, execute
from qmf_shell.parsing.command import AnyCommand
from qmf_shell.render.output_style import OutputStyle
from qmf_shell.session.context import Context
from qmf_shell.session.prompts import PromptCancelledError
from qmf_shell.settings import SETTINGS, Settings, config_path, read_settings
from shell.world import FakeBackend, Output, filesystem, make_output

from qmf.errors import QmfError, RemoteError


@attrs.define
class Somebody:
    """Answers questions from a list; records them, and what was refused."""

    answers: list[str] = attrs.field(factory=list)
    yes: bool = True
    asked: list[str] = attrs.field(factory=list)
    refused: list[str] = attrs.field(factory=list)

    def value(self, question: str, check: Callable[[str], object], default: str | None) -> str:
        self.asked.append(question)
        while self.answers:
            text = self.answers.pop(0)
            try:
                check(text)
            except QmfError as error:
                self.refused.append(str(error))
            else:
                return text
        raise PromptCancelledError("cancelled: nothing was called")

    def confirm(self, question: str) -> bool:
        self.asked.append(question)
        return self.yes


def run(context: Context, line: str, style: OutputStyle = OutputStyle.PLAIN) -> Output:
    output = make_output(style)
    context.settings = output.screen.settings
    assert execute(line, context, output.screen) is Outcome.DONE, output.errors
    return output


def mistake(context: Context, line: str) -> str:
    output = make_output()
    context.settings = output.screen.settings
    assert execute(line, context, output.screen) is Outcome.FAILED
    return output.errors[-1]


# -- questions ---------------------------------------------------------------------------------------------------------


def test_missing_arguments_are_asked_for(context: Context, backend: FakeBackend) -> None:
    somebody = context.prompter = Somebody(["seven", "-1", "7", "hello world"])
    run(context, "call / echo")
    assert backend.calls[-1][1:] == ("echo", {"sequence": 7, "body": "hello world"})
    assert somebody.asked == ["sequence (uint32) - Any number", "body (lstr) - Any text"]
    assert len(somebody.refused) == 2
    assert "not a whole number" in somebody.refused[0]
    assert "must be 0 to 4294967295" in somebody.refused[1]


def test_only_what_is_missing_is_asked_for(context: Context, backend: FakeBackend) -> None:
    somebody = context.prompter = Somebody(["7"])
    run(context, "call / echo body=x")
    assert len(somebody.asked) == 1
    assert backend.calls[-1][2] == {"sequence": 7, "body": "x"}
    run(context, "call / configure {}")
    assert len(somebody.asked) == 1


def test_giving_up_calls_nothing(context: Context, backend: FakeBackend) -> None:
    context.prompter = Somebody()
    assert mistake(context, "call / echo") == "error: cancelled: nothing was called"
    assert backend.calls == []


def test_without_a_terminal_nobody_is_asked(context: Context) -> None:
    assert "are missing" in mistake(context, "call / echo")


# -- many --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def many(backend: FakeBackend) -> None:
    backend.things = [filesystem(f"/{n}", threshold=n) for n in range(1, 21)]


@pytest.mark.usefixtures("many")
def test_call_of_many(context: Context, backend: FakeBackend) -> None:
    backend.answer = {"sequence": 7, "body": "x"}
    lines = run(context, "call -y filesystem where threshold > 17 echo 7 x").lines
    assert lines[0] == "echo on 3 objects: 3 done, 0 failed"
    assert lines[1].split() == ["ID", "Object", "Result", "sequence", "body"]
    assert [line.split()[2:] for line in lines[3:]] == [[f"/{n}", "done", "7", "x"] for n in (18, 19, 20)]
    assert [name for name, _, _ in backend.calls] == [f"org.example:filesystem:/{n}" for n in (18, 19, 20)]


@pytest.mark.usefixtures("many")
def test_call_of_all_and_of_ranges(context: Context, backend: FakeBackend) -> None:
    run(context, "call --yes filesystem all sync")
    assert len(backend.calls) == 20
    run(context, "call -y 103-105 sync")
    run(context, "call -y 101,107 sync")
    assert len(backend.calls) == 25


@pytest.mark.usefixtures("many")
def test_calls_of_many_are_confirmed(context: Context, backend: FakeBackend) -> None:
    assert mistake(context, "call filesystem all sync") == (
        "error: sync would be called on 20 objects: confirm with call --yes"
    )
    somebody = context.prompter = Somebody(yes=False)
    assert mistake(context, "call filesystem all sync") == "error: nothing was called"
    assert somebody.asked == ["Call sync on 20 objects (filesystem /1, filesystem /2, filesystem /3 and ...)?"]
    assert backend.calls == []
    somebody.yes = True
    run(context, "call filesystem all sync")
    assert len(backend.calls) == 20
    context.settings.change("confirm", "off")


@pytest.mark.usefixtures("many")
def test_dry_run(context: Context, backend: FakeBackend) -> None:
    lines = run(context, "call -n filesystem where threshold < 3 sync").lines
    assert lines[0] == "sync would be called on 2 objects"
    assert backend.calls == []


@pytest.mark.usefixtures("many")
def test_failures_of_some_are_shown_and_counted(context: Context, backend: FakeBackend) -> None:
    backend.refusals = {"/19": RemoteError("disk is gone", 7, "a")}
    output = make_output()
    assert execute("call -y filesystem where threshold > 18 sync", context, output.screen) is Outcome.FAILED
    assert output.lines[0] == "sync on 2 objects: 1 done, 1 failed"
    assert "disk is gone" in output.lines[3]
    assert output.errors == ["error: sync failed on 1 of 2: agent a: disk is gone (code 7)"]


@pytest.mark.usefixtures("many")
def test_ctrl_c_tells_what_was_done(context: Context, backend: FakeBackend) -> None:
    backend.stop_at = 5
    output = make_output()
    assert execute("call -y filesystem all sync", context, output.screen) is Outcome.FAILED
    assert output.lines[0] == "sync on 20 objects: 5 done, 0 failed, 15 not called or unanswered"
    assert output.errors == ["error: cancelled: 5 done, 0 failed, 15 not called or unanswered"]


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("call filesystem sync", ["filesystem is a class", "call filesystem where CONDITION sync"]),
        ("call filesystem where threshold > 1", ["METHOD is missing"]),
        ("call filesystem where threshold >", ["expected a value after >"]),
        ("call filesystem all nosuch", ["has no method 'nosuch'"]),
        ("call nosuch all sync", ["no class 'nosuch'"]),
        ("call -x / sync", ["no option -x"]),
    ],
)
def test_mistakes(context: Context, backend: FakeBackend, line: str, parts: list[str]) -> None:
    error = mistake(context, line)
    for part in parts:
        assert part in error
    assert backend.calls == []


@pytest.mark.usefixtures("many")
def test_none_match(context: Context, backend: FakeBackend) -> None:
    assert run(context, "call filesystem where threshold > 99 sync").lines == [
        "No objects of filesystem match: nothing was called."
    ]


# -- properties --------------------------------------------------------------------------------------------------------


def test_setprop(context: Context, backend: FakeBackend) -> None:
    assert run(context, "setprop / threshold=75").lines == ["1 property of 101 filesystem / set"]
    assert backend.assigned == [("org.example:filesystem:/", {"threshold": 75})]


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("setprop /", ["NAME=VALUE is missing"]),
        ("setprop / threshold", ["'threshold' is not NAME=VALUE"]),
        ("setprop / thresold=1", ["no property of filesystem 'thresold'", "did you mean threshold"]),
        ("setprop / threshold=many", ["property 'threshold' of filesystem (uint8)", "not a whole number"]),
        ("setprop / threshold=101", ["must be 1 to 100"]),
        ("setprop / threshold=1 threshold=2", ["given twice"]),
        ("setprop / label=x", ["property 'label' of filesystem is read-only"]),
        ("setprop / mountPoint=/x", ["can only be set when the object is created"]),
    ],
)
def test_setprop_mistakes(context: Context, backend: FakeBackend, line: str, parts: list[str]) -> None:
    error = mistake(context, line)
    for part in parts:
        assert part in error
    assert backend.assigned == []


# -- export ------------------------------------------------------------------------------------------------------------


def test_export_csv(context: Context, tmp_path: Path) -> None:
    path = tmp_path / "fs.csv"
    assert run(context, f"export filesystem {path} sort mountPoint").lines == [f"2 objects written to {path}"]
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["index"] for row in rows] == ["/", "/home"]
    assert rows[0]["options"] == '{"ro": true}'
    assert rows[0]["openFilesHigh"] == "20"
    assert rows[0]["label"] == ""
    assert stat.S_IMODE(path.stat().st_mode) & 0o600 == 0o600


def test_export_names_the_broker_of_any_session(context: Context, backend: FakeBackend, tmp_path: Path) -> None:
    backend.things = [attrs.evolve(item, broker="mq1") for item in backend.things]
    run(context, f"export filesystem {tmp_path / 'x.json'} columns threshold")
    assert {row["broker"] for row in json.loads((tmp_path / "x.json").read_text())} == {"mq1"}


def test_export_json_with_columns(context: Context, tmp_path: Path) -> None:
    path = tmp_path / "fs.json"
    run(context, f"export filesystem {path} where mountPoint = /home columns threshold")
    (row,) = json.loads(path.read_text())
    assert row["threshold"] == 90
    assert "options" not in row
    assert row["agent"] == "example.org:host:alpha"


def test_export_writes_over_nothing_unless_told_to(context: Context, tmp_path: Path) -> None:
    path = tmp_path / "fs.json"
    path.write_text("mine")
    assert "exists already: --force" in mistake(context, f"export filesystem {path}")
    assert path.read_text() == "mine"
    run(context, f"export --force filesystem {path}")
    assert len(json.loads(path.read_text())) == 2


def test_export_elsewhere(context: Context, tmp_path: Path) -> None:
    assert "must end in .csv, .json or .parquet" in mistake(context, "export filesystem x.txt")
    assert "cannot write" in mistake(context, f"export filesystem {tmp_path}/no/such.csv")
    assert "no class 'nosuch'" in mistake(context, "export nosuch x.csv")


def test_parquet_without_pyarrow(context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = tmp_path / "fs.parquet"
    said = mistake(context, f"export filesystem {path}")
    assert "Parquet needs pyarrow, which is not installed: pip install 'qmf[parquet]'" in said
    assert list(tmp_path.iterdir()) == []


def test_parquet(context: Context, backend: FakeBackend, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    backend.things.append(filesystem("/big", bytesRead=2**64 - 1, threshold=-1, label="a\udcff"))
    path = tmp_path / "fs.parquet"
    run(context, f"export filesystem {path}")
    table = parquet.read_table(path).to_pydict()
    rows = dict(
        zip(table["index"], zip(table["bytesRead"], table["threshold"], table["label"], strict=True), strict=False)
    )
    assert rows["/home"] == (1234567, 90, None)
    assert rows["/big"] == (2**64 - 1, -1, "a\\udcff")
    assert set(table["options"]) == {'{"ro": true}'}


# -- the session itself ------------------------------------------------------------------------------------------------


def test_settings(context: Context) -> None:
    lines = run(context, "set").lines
    assert len(lines) == 3 + len(SETTINGS)
    assert run(context, "set pager off").lines == ["pager is off"]
    assert "must be auto or off, not 'maybe'" in mistake(context, "set pager maybe")
    assert "no setting 'pagr'; did you mean pager?" in mistake(context, "set pagr off")
    assert "must be a number above 0" in mistake(context, "set interval x")


def test_output_can_be_changed_while_one_goes(context: Context) -> None:
    output = make_output()
    context.settings = output.screen.settings
    for line in ("set output csv", "list filesystem columns threshold", "set output json", "list filesystem limit 1"):
        assert execute(line, context, output.screen) is Outcome.DONE
    assert output.lines[0] == "id,index,threshold"
    assert output.lines[1] == "101,/,90"
    assert json.loads(output.lines[3])[0]["index"] == "/"
    assert "output is json" in output.errors


def test_aliases(context: Context) -> None:
    output = make_output()
    context.settings = output.screen.settings
    for line in ("alias fs list filesystem where threshold > 5", "fs limit 1", "alias", "alias fs", "alias -d fs"):
        assert execute(line, context, output.screen) is Outcome.DONE, output.errors
    assert "fs stands for: list filesystem where threshold > 5" in output.lines
    assert "org.example:filesystem, 2 objects" in output.lines
    for line, part in (
        ("fs", "no command 'fs'"),
        ("alias -d fs", "no alias 'fs'"),
        ("alias list x", "list is a command"),
        ("alias fs", "no alias 'fs'"),
    ):
        assert execute(line, context, output.screen) is Outcome.FAILED
        assert part in output.errors[-1]


def test_recording(context: Context, tmp_path: Path) -> None:
    path = tmp_path / "incident.txt"
    output = make_output(OutputStyle.COLOUR, 40)
    for line in (f"record on {path}", "list filesystem", "nosuch", "# a comment", "record off", "agents"):
        execute(line, context, output.screen)
    text = path.read_text()
    assert "\x1b" not in text
    assert text.splitlines()[:2] == ["qmf> list filesystem", "org.example:filesystem, 2 objects"]
    assert "error: no command 'nosuch'" in text
    assert "agents" not in text
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "cannot record to" in mistake(context, f"record on {tmp_path}/no/such")
    assert "record on FILE, or record off" in mistake(context, "record on")


def test_settings_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('time-format = "short"\ninterval = 0.5\nbrokers = ["mq1", "mq2"]\n[aliases]\nfull = "list queue"\n')
    settings = read_settings(path)
    assert (settings["time-format"], settings.interval) == ("short", 0.5)
    assert settings.brokers == ("mq1", "mq2")
    assert settings.aliases == {"full": "list queue"}
    assert read_settings(tmp_path / "nosuch") == Settings()
    assert read_settings(None) == Settings()


def test_config_path() -> None:
    assert config_path({"XDG_CONFIG_HOME": "/x"}) == Path("/x/qmf-shell/config.toml")
    assert config_path({"HOME": "/h"}) == Path("/h/.config/qmf-shell/config.toml")
    assert config_path({}) is None


@pytest.mark.parametrize("command", list(standard()), ids=lambda command: command.name)
def test_help_of_a_command(context: Context, command: AnyCommand) -> None:
    lines = run(context, f"{command.name} --help").lines
    assert run(context, f"help {command.name}").lines == lines
    assert lines[0].startswith("Usage: ")
    assert all(any(line in shown for shown in lines) for line, _ in command.examples)
    assert command.examples or not command.parameters


def test_help_is_an_argument_elsewhere(context: Context, backend: FakeBackend) -> None:
    run(context, "call / echo 7 --help")
    assert backend.calls[-1][2] == {"sequence": 7, "body": "--help"}


# -- looks for programs ------------------------------------------------------------------------------------------------


def test_csv(context: Context, backend: FakeBackend) -> None:
    backend.answer = {"sequence": 7, "body": 'a "quoted", \x1b[31mtext'}
    assert run(context, "list filesystem columns label, options", OutputStyle.CSV).lines == [
        "id,index,label,options",
        '101,/,,"{""ro"": true}"',
        '102,/home,,"{""ro"": true}"',
    ]
    assert run(context, "call / echo 7 x", OutputStyle.CSV).lines == [
        "sequence,body",
        '7,"a ""quoted"", \\x1b[31mtext"',
    ]


def test_messages_are_for_people(context: Context, backend: FakeBackend) -> None:
    for style in (OutputStyle.JSON, OutputStyle.CSV):
        output = run(context, "call / sync", style)
        assert output.lines == []
        assert output.errors == ["sync of 101 filesystem /: done"]


def test_values_keep_their_names_in_json_and_csv(context: Context, backend: FakeBackend) -> None:
    row = json.loads(run(context, "list filesystem columns bytesRead limit 1", OutputStyle.JSON).lines[0])[0]
    assert row == {"id": 101, "index": "/", "bytesRead": 1234567}
    assert run(context, "list filesystem columns bytesRead", OutputStyle.CSV).lines[0] == "id,index,bytesRead"
    backend.answer = {"bodyText": "x"}
    assert "bodyText" in json.loads(run(context, "call -y filesystem all sync", OutputStyle.JSON).lines[0])[0]


def test_two_columns_of_one_name_are_told_apart_in_json(context: Context, backend: FakeBackend) -> None:
    row = json.loads(run(context, "list filesystem columns index limit 1", OutputStyle.JSON).lines[0])[0]
    assert row == {"id": 101, "index": "/", "index_2": "/"}


def test_schema_in_json_is_one_tree(context: Context) -> None:
    tree = json.loads(run(context, "schema filesystem", OutputStyle.JSON).lines[0])
    assert tree[0]["class"] == "filesystem"
    assert tree[0]["properties"][3] == {
        "name": "threshold",
        "type": "uint8",
        "access": "RW",
        "unit": "percent",
        "min": 1,
        "max": 100,
    }
    assert [method["name"] for method in tree[0]["methods"]] == ["echo", "configure", "sync"]


def test_events_filters(context: Context) -> None:
    from shell.world import full_event

    for n in range(8):
        context.events.add(full_event(f"/{n}", severity=n, agent=f"example.org:host:{'ab'[n % 2]}"))

    def shown(line: str) -> list[str]:
        rows = json.loads(run(context, line, OutputStyle.JSON).lines[0])
        return [row["arguments"]["mountPoint"] for row in rows]

    assert shown("events -s error") == ["/0", "/1", "/2", "/3"]
    assert shown("events -a host:b -n 2") == ["/5", "/7"]
    assert shown("events filesystemFull where mountPoint ~ '[12]'") == ["/1", "/2"]
    assert shown("events where severity < error and severity > notice") == ["/4"]
    assert shown("events where size > 2000 and not mountPoint = /0 and severity = 1") == ["/1"]
    assert "no severity 'loud'" in mistake(context, "events -s loud")
    assert "is not a regular expression" in mistake(context, "events where a ~ '['")
    assert "is one word too many" in mistake(context, "events where a = 1 b")


def test_heartbeats(context: Context) -> None:
    import time

    from qmf_shell.session.backend import HeartbeatRecord
    from shell.world import ALPHA, BETA

    now = time.time_ns()
    url = "amqp://127.0.0.1:5672"
    context.heartbeats.add(HeartbeatRecord(ALPHA, now, now - 10**9, 10, url))
    context.heartbeats.add(HeartbeatRecord(ALPHA, now, now - 10**9, 10, url))
    context.heartbeats.add(HeartbeatRecord("example.org:host:gone", now, now - 60 * 10**9, 10, url))
    rows = {row["agent"]: row for row in json.loads(run(context, "heartbeats", OutputStyle.JSON).lines[0])}
    assert (rows[ALPHA]["seen"], rows[ALPHA]["state"], rows[ALPHA]["every"]) == (2, "alive", 10 * 10**9)
    assert rows[BETA]["state"] == "no heartbeat yet"
    assert rows["example.org:host:gone"]["state"] == "gone"
    context.heartbeats.add(HeartbeatRecord(BETA, now, now - 16 * 10**9, 10, url))
    rows = {row["agent"]: row for row in json.loads(run(context, "heartbeats beta", OutputStyle.JSON).lines[0])}
    assert {name: row["state"] for name, row in rows.items()} == {BETA: "late"}
