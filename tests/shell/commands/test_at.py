"""`at`: commands on the state at an earlier time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from qmf_shell.commands import standard
from qmf_shell.main import main
from qmf_shell.modes.executor import LineOutcome, execute
from qmf_shell.render.styles import OutputStyle
from qmf_shell.session.context import Context
from qmf_shell.session.history_backend import PastError
from qmf_shell.session.recent import LostIdentity
from shell.fakes import FakeBackend, filesystem, make_output
from shell.line_runner import failure, printed, run
from shell.recorded import Put, T, when

if TYPE_CHECKING:
    from pipeline.lakes import Shop


def test_list_shows_the_objects_of_that_time(past: Context, put: Put) -> None:
    put("one", (1, 10), (20, 30))
    put("two", (15, 1))
    put("gone", (2, 5))
    put("gone", (12, 5), delete=12)
    early = printed(past, f"at {when(10)} list till columns sales")
    assert early[0] == "org.example.shop:till, 2 objects"
    assert [line.split() for line in early[3:]] == [["101", "gone", "5"], ["102", "one", "10"]]
    late = printed(past, f"at {when(16)} list till columns sales")
    assert [line.split() for line in late[3:]] == [["102", "one", "10"], ["103", "two", "1"]]


def test_classes_are_counted_with_what_was_destroyed(past: Context, put: Put) -> None:
    put("one", (1, 10))
    put("gone", (2, 5))
    put("gone", (12, 5), delete=12)
    lines = printed(past, f"at {when(13)} list")
    assert lines[-1].split() == ["org.example.shop", "till", "1", "1"]


def test_conditions_order_and_limits_apply(past: Context, put: Put) -> None:
    for number in range(5):
        put(f"t{number}", (1, number))
    lines = printed(past, f"at {when(2)} list till where sales >= 1 sort sales desc columns sales limit 2")
    assert [line.split() for line in lines[3:5]] == [["101", "t4", "4"], ["102", "t3", "3"]]


def test_show_find_refs_and_tree(past: Context, put: Put) -> None:
    put("one", (1, 10), limit=7)
    put("two", (1, 20), nextRef="org.example.shop:till:one")
    assert any(line.split() == ["config", "limit", "7"] for line in printed(past, f"at {when(2)} show one"))
    assert "two" in printed(past, f"at {when(2)} find two")[3]
    assert printed(past, f"at {when(2)} refs two")[3].split()[:1] == ["to"]
    assert any("till two" in line for line in printed(past, f"at {when(2)} tree"))


def test_an_id_of_the_present_names_the_same_object_in_the_past(past: Context, put: Put) -> None:
    put("one", (1, 10), (20, 30))
    printed(past, "list till")
    assert any("10" in line for line in printed(past, f"at {when(5)} show 101"))
    assert failure(past, f"at {when(0.5)} show 101").endswith("is gone")


def test_formats_are_those_of_the_command(past: Context, put: Put, tmp_path: Path) -> None:
    put("one", (1, 10))
    output = run(past, f"at {when(2)} list till columns sales", style=OutputStyle.JSON)
    assert "10" in "".join(output.lines)
    assert json.loads(output.lines[0])
    path = tmp_path / "tills.csv"
    printed(past, f"at {when(2)} export till {path}")
    assert "one" in path.read_text()


def test_agents_and_events_of_that_time(past: Context, shop: Shop) -> None:
    shop.agent(T + 10, "added", agent="example.org:shop:2")
    shop.events((T + 1, {"till": "x", "amount": 7}), (T + 9, {"till": "y"}), agent="example.org:shop:1")
    assert len(printed(past, f"at {when(5)} agents")) < len(printed(past, f"at {when(15)} agents"))
    lines = printed(past, f"at {when(5)} events")
    assert "till=x" in lines[-1]
    assert "till=y" in printed(past, f"at {when(10)} events")[-1]


def test_a_gap_in_the_recording_is_a_warning(past: Context, shop: Shop, put: Put) -> None:
    put("one", (1, 10))
    shop.agent(T + 10, "removed", reason="disconnected", agent="example.org:shop:1")
    error = failure_with_output(past, f"at {when(20)} list till")
    assert error.startswith("error: incomplete: the recorder had no connection since 2023-11-1")


def failure_with_output(context: Context, line: str) -> str:
    """The one error of a line that prints a result as well."""
    output = make_output()
    context.settings = output.screen.settings
    assert execute(line, context, output.screen) is LineOutcome.FAILED
    assert output.lines
    (error,) = output.errors
    return error


def test_a_time_before_the_recording_is_refused(past: Context, put: Put) -> None:
    put("one", (1, 10))
    assert "nothing was recorded at" in failure(past, f"at {when(-1)} list till")


def test_commands_about_the_present_are_refused(past: Context) -> None:
    for line in ("watch till", "call one sell", "at -1m list", "quit"):
        assert "is not possible in the past; at takes list, show" in failure(past, f"at {when(1)} {line}")
    assert failure(past, "at nonsense list").startswith("error: 'nonsense' is not a time")
    assert failure(past, "at -10m").startswith("error: at: COMMAND is missing")
    assert failure(past, f"at {when(1)} lst").startswith("error: no command 'lst'")


def test_without_a_lake_it_says_how_to_name_one() -> None:
    context = Context(FakeBackend([filesystem("/")]), standard())
    assert failure(context, "at -10m list").startswith("error: no lake: start with --lake DIR")


def test_nothing_is_changed_in_the_past(past: Context, put: Put) -> None:
    put("one", (1, 10))
    target = past.objects([("org.example.shop", "till")])[0]
    with pytest.raises(PastError, match="connect to a broker with -b URL"):
        past.backend.set_properties(target, {})


def test_the_present_keeps_what_it_knows_of_destroyed_objects(past: Context, put: Put) -> None:
    put("one", (1, 10), (20, 30))
    printed(past, "list till")
    (entry,) = past.ids.entries()
    past.ids.mark_deleted(entry.identity.key, 5)
    printed(past, f"at {when(5)} list till")
    (entry,) = past.ids.entries()
    assert entry.deleted == 5


@pytest.mark.slow
def test_the_program_answers_without_a_broker(
    shop: Shop, put: Put, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    put("one", (1, 10))
    assert main(["--lake", shop.root, "-c", f"at {when(2)} list till columns sales", "--csv"]) == 0
    assert "one,10" in capsys.readouterr().out
    assert main(["--lake", str(tmp_path / "none"), "-c", "list"]) == 64
    assert "not a lake" in capsys.readouterr().err


def test_what_is_lost_now_is_not_lost_in_the_past_and_stays_lost(past: Context, put: Put) -> None:
    put("one", (1, 10))
    put("two", (1, 20), (20, 30))
    (one, _) = past.objects([("org.example.shop", "till")])
    past.lost.add([LostIdentity(one.identity, one.created, T * 10**9)])
    lines = printed(past, f"at {when(5)} list till columns sales")
    assert lines[0] == "org.example.shop:till, 2 objects"
    assert past.lost.get(one.identity.key) is not None
    assert "lost" not in "\n".join(printed(past, f"at {when(5)} list"))
    assert json.loads(run(past, f"at {when(5)} show one --json").lines[0])["index"] == "one"
