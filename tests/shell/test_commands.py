"""Commands over the invented world: what they ask, what they say, and every mistake in one line."""

from __future__ import annotations

import threading

import attrs
import pytest
from qmf_shell.modes.executor import Outcome, evaluate, execute
from qmf_shell.parsing.binding import bind
from qmf_shell.parsing.words import split_line
from qmf_shell.render.output_style import OutputStyle
from qmf_shell.results.result import Result, ResultStream
from qmf_shell.session.backend import ConnectionStatus
from qmf_shell.session.context import Context
from shell.world import (
    ALPHA,
    BETA,
    NOON,
    SECOND,
    FakeBackend,
    Output,
    filesystem,
    full_event,
    make_output,
    process,
)

from qmf.errors import DisconnectedError, RemoteError, RequestTimeout


def run(context: Context, *lines: str) -> list[str]:
    """What the last of these lines prints."""
    output = make_output()
    for line in lines:
        output = make_output()
        assert execute(line, context, output.screen) is Outcome.DONE, output.errors
        assert output.errors == []
    return output.lines


def mistake(context: Context, *lines: str) -> str:
    """The one line that the last of these lines complains with."""
    for line in lines[:-1]:
        run(context, line)
    output = make_output()
    assert execute(lines[-1], context, output.screen) is Outcome.FAILED
    assert output.lines == []
    (error,) = output.errors
    return error


def cells(line: str) -> list[str]:
    return [cell for cell in line.split("  ") if cell.strip()]


@pytest.mark.parametrize("line", ["agents", "heartbeats", "heartbeats alpha"])
def test_a_broker_that_is_not_there_is_told(context: Context, backend: FakeBackend, line: str) -> None:
    backend.others = (ConnectionStatus("amqp://mq2:5672", False, "connection refused", "mq2"),)
    output = make_output()
    assert execute(line, context, output.screen) is Outcome.FAILED
    assert ALPHA in output.out.getvalue()
    assert output.errors == [
        "error: incomplete: broker mq2 did not answer: not connected to amqp://mq2:5672: connection refused"
    ]


def test_agents(context: Context) -> None:
    title, head, _, first, second = run(context, "agents")
    assert title == "2 agents"
    assert head.split() == ["Agent", "Vendor", "Product", "Instance", "Epoch", "Heartbeat", "Broker"]
    assert first.split() == [ALPHA, "example.org", "host", "alpha", "1", "10s", "amqp://127.0.0.1:5672"]
    assert second.split()[0] == BETA


def test_no_agents(context: Context, backend: FakeBackend) -> None:
    backend.known_agents = []
    assert run(context, "agents") == ["No agent has answered yet."]


def test_list_counts_what_is_there_now(context: Context, backend: FakeBackend) -> None:
    def counts() -> dict[str, int]:
        return {words[1]: int(words[2]) for line in run(context, "list")[3:] if (words := line.split())}

    assert counts() == {"filesystem": 2, "process": 2}
    backend.things.append(filesystem("/new"))
    assert counts()["filesystem"] == 3


def test_list_a_class(context: Context) -> None:
    lines = run(context, "list filesystem")
    assert lines[0] == "org.example:filesystem, 2 objects"
    assert lines[1].split() == ["ID", "Created", "Destroyed", "Index"]
    assert [line.split()[0] for line in lines[3:]] == ["101", "102"]
    assert [line.split()[-1] for line in lines[3:]] == ["/", "/home"]


def test_numbers_stay_from_list_to_list(context: Context, backend: FakeBackend) -> None:
    run(context, "list filesystem")
    backend.things.insert(0, filesystem("/a"))
    lines = run(context, "list filesystem")[3:]
    assert {line.split()[-1]: line.split()[0] for line in lines} == {"/": "101", "/home": "102", "/a": "103"}


@pytest.mark.parametrize("name", ["FileSystem", "org.example:filesystem", "ORG.example:Filesystem"])
def test_classes_are_found_in_any_case(context: Context, name: str) -> None:
    assert run(context, f"list {name}")[0] == "org.example:filesystem, 2 objects"


def test_a_name_in_two_packages_lists_both(context: Context) -> None:
    lines = run(context, "list process")
    assert lines[0] == "No objects of com.other:process."
    assert lines[2] == "org.example:process, 2 objects"


def test_objects_are_sorted_as_people_count(context: Context, backend: FakeBackend) -> None:
    backend.things = [filesystem(index) for index in ("eth10", "eth2", "eth1", "lo")]
    assert [line.split()[-1] for line in run(context, "list filesystem")[3:]] == ["eth1", "eth2", "eth10", "lo"]


def test_the_agent_is_named_where_there_are_several(context: Context, backend: FakeBackend) -> None:
    backend.things.append(filesystem("/", BETA))
    lines = run(context, "list filesystem")
    assert lines[1].split()[-1] == "Agent"
    assert {line.split()[-1] for line in lines[3:]} == {ALPHA, BETA}


def test_objects_whose_key_is_a_number_are_listed_with_their_name(context: Context, backend: FakeBackend) -> None:
    thing = process(1)
    backend.things = [attrs.evolve(thing, identity=attrs.evolve(thing.identity, title="init"))]
    lines = run(context, "list org.example:process")
    assert lines[1].split()[-2:] == ["Index", "Name"]
    assert lines[3].split()[-2:] == ["1", "init"]


def test_destroyed_objects_are_listed_with_their_end(context: Context, backend: FakeBackend) -> None:
    run(context, "list filesystem")
    gone = backend.things.pop(0)
    context.ids.mark_deleted(gone.identity.key, NOON + 5 * SECOND)
    lines = run(context, "list filesystem")
    assert lines[0] == "org.example:filesystem, 1 object, 1 destroyed"
    assert cells(lines[-1])[2] != "-"
    assert run(context, "list -a filesystem")[0] == "org.example:filesystem, 1 object"


def test_list_with_ids_shows_side_by_side(context: Context) -> None:
    lines = run(context, "list filesystem", "list filesystem 101 /home")
    assert lines[1].split() == ["Type", "Element", "101", "102"]
    assert ["config", "mountPoint", "/", "/home"] in [line.split() for line in lines]


def test_show(context: Context) -> None:
    lines = run(context, "list filesystem", "show 101")
    assert lines[0] == "org.example:filesystem /"
    values = {parts[1]: parts[2] for line in lines[3:] if len(parts := line.split(None, 2)) == 3}
    assert values["threshold"] == "90 %"
    assert values["bytesRead"] == "1,234,567 octets"
    assert values["openFiles"] == "12 files (high 20, low 3)"
    assert values["latency"] == "3.2ms (min 80µs, max 12.5ms, 4 samples)"
    assert values["uptime"] == "1d 3h 12m 5s"
    assert values["label"] == "-"
    assert values["options"] == '{"ro": true}'
    assert values["mounted"] == "2024-05-01 11:00:00"
    assert [line.split()[0] for line in lines[3:5]] == ["config", "config"]


@pytest.mark.parametrize("name", ["/home", "filesystem:/home", "org.example:filesystem:/home"])
def test_show_by_name(context: Context, name: str) -> None:
    assert run(context, f"show {name}")[0] == "org.example:filesystem /home"


def test_a_name_with_its_class_asks_that_class_only(context: Context, backend: FakeBackend) -> None:
    run(context, "show filesystem:/home")
    assert backend.asked == ["org.example:filesystem"]


def test_objects_are_asked_for_by_their_keys(context: Context, backend: FakeBackend) -> None:
    run(context, "show filesystem:/home")
    keys = [["eq", "mountPoint", ["quote", text]] for text in ("filesystem:/home", "/home")]
    assert backend.wheres == [["or", *keys]]
    backend.wheres.clear()
    assert "no object '/nosuch'" in mistake(context, "show /nosuch")
    assert backend.wheres[-1] == []


def test_objects_of_any_name_are_found(context: Context, backend: FakeBackend) -> None:
    odd = filesystem("/odd")
    identity = attrs.evolve(odd.identity, key=attrs.evolve(odd.identity.key, name="widget-3"))
    backend.things.append(attrs.evolve(odd, identity=identity))
    assert run(context, "show widget-3")[0] == "org.example:filesystem /odd"


def test_objects_are_found_by_a_name_that_is_no_key(context: Context, backend: FakeBackend) -> None:
    backend.things[2] = attrs.evolve(process(1), values={"pid": 1, "name": "init"})
    assert run(context, "show init")[0] == "org.example:process 1"
    assert run(context, "show process:init")[0] == "org.example:process 1"


def test_show_fetches_anew(context: Context, backend: FakeBackend) -> None:
    run(context, "list filesystem")
    backend.things[1] = filesystem("/", threshold=75)
    assert any("75 %" in line for line in run(context, "show 101"))


def test_references_show_short_ids(context: Context, backend: FakeBackend) -> None:
    root = filesystem("/")
    backend.things = [root, filesystem("/home", parent=root.identity.key)]
    assert any("org.example:filesystem:/" in line for line in run(context, "show /home"))
    assert any("102 (filesystem /)" in line for line in run(context, "show /", "show /home"))


def test_values_beyond_the_schema_are_shown(context: Context, backend: FakeBackend) -> None:
    backend.things = [filesystem("/", surprise="hello")]
    assert any(line.split() == ["other", "surprise", "hello"] for line in run(context, "show /"))


def test_objects_of_two_classes_get_two_tables(context: Context) -> None:
    lines = run(context, "show / process:1")
    assert [line for line in lines if line.startswith("org.")] == ["org.example:filesystem /", "org.example:process 1"]


def test_short_ids_win_over_keys(context: Context, backend: FakeBackend) -> None:
    backend.things.append(process(101))
    assert run(context, "list filesystem", "show 101")[0] == "org.example:filesystem /"
    assert run(context, "show process:101")[0] == "org.example:process 101"
    assert run(context, "list process 101")[0] == "org.example:process 101"


def test_a_key_of_digits_without_short_id(context: Context) -> None:
    assert run(context, "show 4711")[0] == "org.example:process 4711"


def test_schema_lists_classes_and_events(context: Context) -> None:
    rows = [line.split() for line in run(context, "schema")[3:]]
    assert ["org.example", "filesystem", "object", "6", "4", "3"] in rows
    assert ["org.example", "filesystemFull", "event", "2", "-", "-"] in rows


def test_schema_of_a_class(context: Context) -> None:
    text = "\n".join(run(context, "schema filesystem"))
    for part in (
        "Class org.example:filesystem (00000000-0000-0000-0000-000000000001)",
        "A mounted filesystem",
        "ReadCreate",
        "optional, at most 16 bytes",
        "1 to 100",
        "refers to filesystem",
        "Method echo: Send back what it gets",
        "in/out",
        "default false",
        "Method sync: Write everything (0 arguments)",
    ):
        assert part in text


def test_schema_of_an_event(context: Context) -> None:
    text = "\n".join(run(context, "schema filesystemfull"))
    assert "Event org.example:filesystemFull" in text
    assert "Default severity: warn" in text
    assert "mountPoint" in text


@pytest.mark.parametrize(
    ("line", "name", "arguments"),
    [
        ("call 101 echo 7 'hello world'", "echo", {"sequence": 7, "body": "hello world"}),
        ("call 101 echo body=hello sequence=0x10", "echo", {"sequence": 16, "body": "hello"}),
        ("call 101 echo body=hello 7", "echo", {"sequence": 7, "body": "hello"}),
        ("call 101 echo 7 'body=x'", "echo", {"sequence": 7, "body": "body=x"}),
        ("call 101 echo 7 ''", "echo", {"sequence": 7, "body": ""}),
        ("call 101 ECHO 7 x", "echo", {"sequence": 7, "body": "x"}),
        ("call / sync", "sync", {}),
        ('call / configure {"a": [1, 2]}', "configure", {"options": {"a": [1, 2]}}),
        ('call / configure options={"a": "b c"} force=yes', "configure", {"options": {"a": "b c"}, "force": True}),
        ("call / configure {} like=/home", "configure", {"options": {}, "like": filesystem("/home").identity.key}),
        ("call 1 signal 15", "signal", {"number": 15}),
    ],
)
def test_call(context: Context, backend: FakeBackend, line: str, name: str, arguments: dict[str, object]) -> None:
    run(context, "list filesystem", line)
    assert [(method, given) for _, method, given in backend.calls] == [(name, arguments)]


def test_call_shows_outputs_or_says_that_it_is_done(context: Context, backend: FakeBackend) -> None:
    backend.answer = {"sequence": 7, "body": "hello"}
    assert run(context, "call / echo 7 hello") == ["echo of 101 filesystem /", "    sequence  7", "    body      hello"]
    backend.answer = {}
    assert run(context, "call / sync") == ["sync of 101 filesystem /: done"]


def test_the_method_tells_which_of_two_objects_is_meant(context: Context, backend: FakeBackend) -> None:
    backend.things = [filesystem("1"), process(1)]
    run(context, "call 1 signal 15")
    assert backend.calls == [("org.example:process:1", "signal", {"number": 15})]


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("frobnicate", ["no command 'frobnicate'", "`help` lists them"]),
        ("lsit", ["did you mean list"]),
        ("list filesytem", ["no class 'filesytem'", "did you mean filesystem"]),
        ("list org.example:filesytem", ["did you mean org.example:filesystem"]),
        ("list filesystemFull", ["no class 'filesystemFull'"]),
        ("schema nosuch", ["no class or event class 'nosuch'"]),
        ("show /hom", ["no object '/hom'", "/home"]),
        ("show 99999", ["no object '99999'"]),
        ("show", ["ID is missing"]),
        ("show 'x", ["quote ' in column 6 is not closed"]),
        ("list filesystem 4711", ["no object '4711'"]),
        ("call / ecko", ["filesystem / has no method 'ecko'", "did you mean echo"]),
        ("call / xyzzy", ["it has echo, configure and sync"]),
        ("call / echo", ["sequence (uint32) and body (lstr) are missing", "echo sequence:uint32 body:lstr"]),
        ("call / echo 7", ["body (lstr) is missing"]),
        ("call / echo seven x", ["argument 'sequence' of echo (uint32)", "not a whole number", "'seven'"]),
        ("call / echo -1 x", ["argument 'sequence' of echo (uint32)", "must be 0 to 4294967295", "not -1"]),
        ("call / echo 7 x y", ["'y' is one argument too many"]),
        ("call / echo 7 x sequence=8", ["'sequence'", "given twice"]),
        ("call / echo seqence=8 x", ["no argument of echo 'seqence'", "did you mean sequence"]),
        ("call / configure nojson", ["argument 'options' of configure (map)", "not JSON"]),
        ("call / configure [1]", ["not a JSON object"]),
        ("call / configure {} maybe", ["'force'", "neither true nor false"]),
        ("call / configure {} like=/nowhere", ["no object '/nowhere'"]),
        ("call process:1 signal 65", ["argument 'number' of signal (uint8)", "must be 1 to 64", "not 65"]),
        ("events nosuch", ["no event class 'nosuch'"]),
        ("events -n x", ["option -n needs a number, not 'x'"]),
        ("help nosuch", ["no command 'nosuch'"]),
    ],
)
def test_mistakes(context: Context, backend: FakeBackend, line: str, parts: list[str]) -> None:
    error = mistake(context, line)
    for part in parts:
        assert part in error
    assert backend.calls == []


def test_ambiguous_names_list_candidates_with_their_short_ids(context: Context, backend: FakeBackend) -> None:
    backend.things = [filesystem("1"), process(1)]
    error = mistake(context, "show 1")
    assert "'1' names 2 objects: 101 filesystem 1 and 102 process 1; use the short id" in error
    assert run(context, "show 102")[0] == "org.example:process 1"


def test_many_candidates_are_counted(context: Context, backend: FakeBackend) -> None:
    backend.things = [filesystem("/", f"example.org:host:{n}") for n in range(8)]
    assert "names 8 objects: 101 filesystem /, 102 filesystem /" in mistake(context, "show /")
    assert mistake(context, "show /").endswith("and 3 more; use the short id")


def test_a_listed_object_that_is_gone(context: Context, backend: FakeBackend) -> None:
    run(context, "list filesystem")
    backend.things.clear()
    assert mistake(context, "show 101") == "error: object 101 (filesystem /) is gone"


@pytest.mark.parametrize(
    ("raised", "text"),
    [
        (RemoteError("no\nway\x1b[31m", 7, ALPHA), f"error: agent {ALPHA}: no way\\x1b[31m (code 7)"),
        (RequestTimeout("method sync", ALPHA, 10), f"error: no answer to method sync from agent {ALPHA} within 10 s"),
        (DisconnectedError("amqp://h", "closed"), "error: not connected to amqp://h: closed"),
        (ZeroDivisionError("oops"), "error: internal error: ZeroDivisionError: oops (--verbose shows details)"),
    ],
)
def test_what_goes_wrong_elsewhere_is_one_line_too(
    context: Context, backend: FakeBackend, raised: Exception, text: str
) -> None:
    run(context, "list filesystem")
    backend.error = raised
    assert mistake(context, "call 101 sync") == text


def test_ctrl_c_gets_through(context: Context, backend: FakeBackend, output: Output) -> None:
    backend.error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        execute("list", context, output.screen)


def test_silent_agents_are_told_and_count_as_failure(context: Context, backend: FakeBackend) -> None:
    backend.failures = {BETA: "no answer within 10 s"}
    output = make_output()
    assert execute("list filesystem", context, output.screen) is Outcome.FAILED
    assert output.lines[0] == "org.example:filesystem, 2 objects"
    assert output.errors == [f"error: incomplete: agent {BETA} did not answer: no answer within 10 s"]
    backend.failures = {}
    run(context, "list filesystem")


def test_events(context: Context) -> None:
    assert run(context, "events") == ["No events since this session began; `events -f` waits for them."]
    for n in range(25):
        context.events.add(full_event(f"/{n}", severity=n % 9))
    lines = run(context, "events")
    assert lines[0] == "20 events"
    assert lines[1].split() == ["Time", "Severity", "Event", "Arguments", "Agent"]
    assert lines[3].split()[:4] == ["2024-05-01", "12:00:00", "notice", "filesystemFull"]
    assert lines[6].split()[2] == "8"
    assert "mountPoint=/24 size=2,048 octets" in lines[-2]
    assert lines[-1] == "5 earlier ones; events -n 0 shows all"
    assert len(run(context, "events -n 0")) == 28
    assert len(run(context, "events -n 3 FILESYSTEMFULL")) == 7


def test_follow_prints_new_events_of_the_class(context: Context) -> None:
    context.events.add(full_event("/before"))
    stream = evaluate("events -f filesystemfull", context)
    assert isinstance(stream, ResultStream)
    got: list[Result] = []
    reader = threading.Thread(target=lambda: got.append(next(stream.items)), daemon=True)
    reader.start()
    # Nobody can see from outside that the reader waits: so events come until it has one.
    while not got:
        context.events.add(full_event("/after"))
        reader.join(0.01)
    assert "/after" in str(got[0])


def test_help_names_every_command(context: Context) -> None:
    lines = run(context, "help")
    for command in context.registry:
        assert any(line.split()[0] == command.name for line in lines[3:-1]), command.name


def test_help_of_each_command(context: Context) -> None:
    for command in context.registry:
        lines = run(context, f"help {command.name}")
        assert lines[0] == f"Usage: {command.usage[0]}"
        for example, _ in command.examples:
            assert any(example in line for line in lines)


def test_examples_of_help_can_be_parsed(context: Context) -> None:
    for command in context.registry:
        for example, _ in command.examples:
            name, *rest = split_line(example)
            assert context.registry.find(name.text) is command
            bind(command, rest)


def test_quit(context: Context, output: Output) -> None:
    assert execute("quit", context, output.screen) is Outcome.QUIT
    assert execute("EXIT", context, output.screen) is Outcome.QUIT


@pytest.mark.parametrize("line", ["", "   ", "# comment", "! comment"])
def test_nothing_to_do(context: Context, output: Output, line: str) -> None:
    assert execute(line, context, output.screen) is Outcome.DONE
    assert output.lines + output.errors == []


@pytest.mark.parametrize("style", list(OutputStyle))
def test_every_command_in_every_look(context: Context, backend: FakeBackend, style: OutputStyle) -> None:
    backend.answer = {"sequence": 7, "body": "x"}
    context.events.add(full_event())
    lines = "agents,list,list filesystem,show 101 102,schema,schema filesystem,call 101 echo 7 x,events,help"
    for line in lines.split(","):
        output = make_output(style, 60)
        assert execute(line, context, output.screen) is Outcome.DONE
        assert output.lines
