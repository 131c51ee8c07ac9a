"""`set`, `alias`, `record`."""

from __future__ import annotations

import json
import stat
from pathlib import Path

from qmf_shell.modes.executor import LineOutcome, execute
from qmf_shell.render.styles import OutputStyle
from qmf_shell.session.context import Context
from qmf_shell.settings import SETTINGS
from shell.fakes import make_output
from shell.line_runner import failure, run


def test_settings(context: Context) -> None:
    lines = run(context, "set").lines
    assert len(lines) == 3 + len(SETTINGS)
    assert run(context, "set pager off").lines == ["pager is off"]
    assert "must be auto or off, not 'maybe'" in failure(context, "set pager maybe")
    assert "no setting 'pagr'; did you mean pager?" in failure(context, "set pagr off")
    assert "must be a number above 0" in failure(context, "set interval x")


def test_output_can_be_changed_while_one_goes(context: Context) -> None:
    output = make_output()
    context.settings = output.screen.settings
    for line in ("set output csv", "list filesystem columns threshold", "set output json", "list filesystem limit 1"):
        assert execute(line, context, output.screen) is LineOutcome.DONE
    assert output.lines[0] == "id,index,threshold"
    assert output.lines[1] == "101,/,90"
    assert json.loads(output.lines[3])["index"] == "/"
    assert "output is json" in output.errors


def test_aliases(context: Context) -> None:
    output = make_output()
    context.settings = output.screen.settings
    for line in ("alias fs list filesystem where threshold > 5", "fs limit 1", "alias", "alias fs", "alias -d fs"):
        assert execute(line, context, output.screen) is LineOutcome.DONE, output.errors
    assert "fs stands for: list filesystem where threshold > 5" in output.lines
    assert "org.example:filesystem, 2 objects" in output.lines
    for line, part in (
        ("fs", "no command 'fs'"),
        ("alias -d fs", "no alias 'fs'"),
        ("alias list x", "list is a command"),
        ("alias fs", "no alias 'fs'"),
        ("alias q=list queue", "alias q: write a blank, and no =, between the word and its command"),
        ("alias q='list queue'", "alias q: write a blank, and no ="),
        ("alias q= list queue", "alias q: write a blank, and no ="),
        ("alias q = list queue", "alias q: write a blank, and no ="),
        ("alias q lisst queue", "no command 'lisst'"),
        ("alias q 'agents; nosuch'", "no command 'nosuch'"),
        ("q", "no command 'q'"),
    ):
        assert execute(line, context, output.screen) is LineOutcome.FAILED
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
    assert "cannot record to" in failure(context, f"record on {tmp_path}/no/such")
    assert "record on FILE, or record off" in failure(context, "record on")


def test_short_times(context: Context) -> None:
    output = make_output()
    context.settings = output.screen.settings
    assert execute("set time-format short", context, output.screen) is LineOutcome.DONE
    assert execute("list org.example:process", context, output.screen) is LineOutcome.DONE
    assert any(line.split()[:3] == ["101", "12:00:00", "-"] for line in output.lines)
