"""Several commands at once, programs and files for their output, files with commands, the format of one result."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from qmf_shell.modes import batch
from qmf_shell.modes.executor import LineOutcome, execute, outcomes
from qmf_shell.session.context import Context
from shell.fakes import FakeBackend, Output, make_output
from shell.line_runner import failure, printed, run


def test_commands_run_one_after_the_other(context: Context, output: Output) -> None:
    text = "agents; list filesystem # and\n\n! nothing else\nnosuch; show 101"
    assert execute(text, context, output.screen) is LineOutcome.FAILED
    titles = [line for line in output.lines if line.startswith(("2 agents", "org.example"))]
    assert titles == ["2 agents", "org.example:filesystem, 2 objects", "org.example:filesystem /"]
    assert output.errors == ["error: no command 'nosuch'; `help` lists them"]


def test_a_text_that_cannot_be_split_runs_nothing(context: Context) -> None:
    assert failure(context, "agents; list |") == "error: a program must follow the | in column 14"


def test_each_command_has_an_outcome(context: Context, output: Output) -> None:
    found = list(outcomes("nosuch; agents; quit; list", context, output.screen))
    assert found == [LineOutcome.FAILED, LineOutcome.DONE, LineOutcome.QUIT]
    assert batch.run([("nosuch; quit", "")], context, output.screen) == 1
    assert batch.run([("quit; nosuch", "")], context, output.screen) == 0


def test_stopping_at_a_failure_within_a_line(context: Context, output: Output) -> None:
    assert batch.run([("nosuch; agents", "")], context, output.screen, stop=True) == 1
    assert output.lines == []


def test_ctrl_c_in_a_view_ends_the_line(context: Context, output: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("qmf_shell.modes.screen.time.sleep", stopped)
    execute("watch filesystem; agents", context, output.screen)
    assert "2 agents" not in output.lines


def test_an_alias_may_be_several_commands_with_a_program(context: Context, tmp_path: Path) -> None:
    path = tmp_path / "out"
    lines = printed(context, f"alias both 'agents; list filesystem | cat > {path}'; both")
    assert "2 agents" in lines
    assert "org.example:filesystem, 2 objects" not in lines
    assert path.read_text().startswith("org.example:filesystem, 2 objects\n")


def test_a_program_reads_the_output(context: Context, tmp_path: Path) -> None:
    path = tmp_path / "out"
    assert printed(context, f"list filesystem | grep -v home | cat > {path}") == []
    assert "/home" not in path.read_text()
    assert "filesystem, 2 objects" in path.read_text()


def test_a_program_may_read_only_the_beginning(context: Context, backend: FakeBackend, tmp_path: Path) -> None:
    path = tmp_path / "out"
    backend.records = backend.records * 5000
    assert printed(context, f"list filesystem columns all | head -1 > {path}; agents")[0] == "2 agents"
    assert path.read_text().count("\n") == 1


def test_a_program_starts_even_without_output_but_not_after_a_mistake(context: Context, tmp_path: Path) -> None:
    path = tmp_path / "out"
    assert printed(context, f"list filesystem where threshold = 1 --csv | wc -l > {path}") == []
    assert path.exists()
    path.unlink()
    assert failure(context, f"list nosuch | wc -l > {path}").startswith("error: no class 'nosuch'")
    assert not path.exists()


def test_a_program_that_fails_is_a_failure(context: Context) -> None:
    output = make_output()
    assert execute("agents | exit 3", context, output.screen) is LineOutcome.FAILED
    assert execute("agents | cat > /dev/null", context, output.screen) is LineOutcome.DONE
    assert output.lines + output.errors == []


def test_a_file_gets_the_output(context: Context, tmp_path: Path) -> None:
    path = tmp_path / "a file"
    assert printed(context, f"agents > '{path}'") == []
    once = path.read_text()
    assert once.startswith("2 agents\n")
    printed(context, f"agents >> '{path}'")
    assert path.read_text() == once * 2
    printed(context, f"list filesystem where threshold > 1 > '{path}'")
    assert path.read_text().startswith("org.example:filesystem, 2 objects\n")


def test_a_mistake_leaves_the_file_as_it_was(context: Context, tmp_path: Path) -> None:
    path = tmp_path / "out"
    failure(context, f"list nosuch > {path}")
    assert not path.exists()
    path.write_text("before")
    failure(context, f"list nosuch > {path}")
    assert path.read_text() == "before"


def test_a_file_that_cannot_be_written(context: Context, backend: FakeBackend, tmp_path: Path) -> None:
    assert failure(context, f"call / sync > {tmp_path}/nosuch/out").endswith("/nosuch/out: No such file or directory")
    assert backend.calls == []
    assert failure(context, f"agents > {tmp_path}") == f"error: cannot write {tmp_path}: Is a directory"
    if os.path.exists("/dev/full"):  # noqa: PTH110 - not on every system
        assert failure(context, "agents > /dev/full") == "error: cannot write /dev/full: No space left on device"


def test_a_format_for_one_result(context: Context, tmp_path: Path) -> None:
    path = tmp_path / "out"
    printed(context, f"agents --json > {path}")
    assert json.loads(path.read_text().splitlines()[0]) is not None
    assert printed(context, "agents --csv")[0].startswith("agent,")
    assert printed(context, "agents")[0] == "2 agents"


def test_the_format_is_an_option_only_before_the_arguments_of_a_call(context: Context, backend: FakeBackend) -> None:
    run(context, "call --json / echo 7 --csv")
    assert backend.calls == [("org.example:filesystem:/", "echo", {"sequence": 7, "body": "--csv"})]


def test_a_file_with_commands(context: Context, output: Output, tmp_path: Path) -> None:
    inner, outer = tmp_path / "inner.qmf", tmp_path / "outer.qmf"
    inner.write_text("# two\nnosuch\nagents; quit\nagents\n")
    outer.write_text(f"list filesystem\nsource {inner}\nagents\n")
    assert execute(f"source {outer}; agents", context, output.screen) is LineOutcome.QUIT
    assert output.lines.count("2 agents") == 1
    assert output.errors == [f"error: {inner}, line 2: no command 'nosuch'; `help` lists them"]


def test_a_file_with_commands_that_cannot_be_read(context: Context, tmp_path: Path) -> None:
    assert failure(context, f"source {tmp_path}/nosuch").endswith("/nosuch: No such file or directory")
    endless = tmp_path / "endless.qmf"
    endless.write_text(f"source {endless}\n")
    assert failure(context, f"source {endless}").endswith("16 files run each other already")


def test_a_view_ends_with_its_program(context: Context, tmp_path: Path) -> None:
    path = tmp_path / "out"
    assert printed(context, f"watch -n 0.1 filesystem | head -1 > {path}") == []
    assert path.read_text() == "org.example:filesystem, 2 objects\n"


def test_ctrl_c_in_a_view_lets_its_program_end(
    context: Context, output: Output, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("qmf_shell.modes.screen.time.sleep", stopped)
    path = tmp_path / "out"
    assert execute(f"watch filesystem | cat > {path}; agents", context, output.screen) is LineOutcome.DONE
    assert path.read_text().startswith("org.example:filesystem, 2 objects\n")
    assert output.lines == []
    assert output.screen.interrupted


def test_ctrl_c_while_a_command_waits_for_an_answer(
    context: Context, backend: FakeBackend, output: Output, tmp_path: Path
) -> None:
    backend.error = KeyboardInterrupt()
    path = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        execute(f"list | cat > {path}", context, output.screen)
    assert not path.exists()
    backend.error = None
    # The screen prints where it did before.
    execute("agents", context, output.screen)
    assert output.lines[0] == "2 agents"
