"""The real program in a pseudo-terminal: menus, hints, views in place, narrow screens, keys; scripts and exit codes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from rich.cells import cell_len
from shell.terminals import Terminal, environment, run

from qmf.broker import EmbeddedBroker
from qmf.hostagent import EmbeddedHostAgent

pytestmark = pytest.mark.slow


def test_menus_and_hints_while_typing(terminal: Terminal) -> None:
    terminal.enter("list agent")
    terminal.sees(r"^ +101 ")
    terminal.ready()
    terminal.child.send("call 101 e\t")
    terminal.sees(r"^qmf> call 101 echo")
    terminal.child.send(" ")
    terminal.sees(r"^ echo sequence:uint32\(in/out\) body:lstr\(in/out\)  uint32, in/out")
    terminal.child.send("\t")
    terminal.sees(r"sequence= +uint32, in/out")
    terminal.child.send("7 ")
    terminal.sees(r"lstr, in/out")
    terminal.child.send("hello\r")
    terminal.sees(r"^ +body +hello")
    terminal.ready()
    terminal.child.send("list process where cpuP\t")
    terminal.sees(r"^qmf> list process where cpuPercent")
    terminal.sees(r"cpuPercent  \w+, percent")
    terminal.child.send("\x03")
    terminal.ready()
    terminal.leave()


def test_missing_arguments_are_asked_for(terminal: Terminal) -> None:
    terminal.enter("list agent")
    terminal.sees(r"^ +101 ")
    terminal.ready()
    terminal.enter("call 101 echo")
    terminal.sees(r"^sequence \(uint32\)")
    terminal.enter("many")
    terminal.sees(r"not a whole number")
    terminal.child.send("\x15")
    terminal.enter("7")
    terminal.sees(r"^body \(lstr\)")
    terminal.enter("some text")
    terminal.sees(r"^ +body +some text")
    terminal.ready()
    terminal.leave()


def test_many_are_confirmed(terminal: Terminal) -> None:
    terminal.enter("setprop / threshold=85")
    terminal.sees(r"1 property of 101 filesystem / set")
    terminal.ready()
    terminal.enter("call -n agent all echo 1 x")
    terminal.sees(r"echo would be called on 1 object")
    terminal.ready()
    terminal.leave()


def test_a_screen_fills_the_terminal_and_leaves_the_last_picture(terminal: Terminal) -> None:
    terminal.enter("watch -n 0.3 process sort pid columns name, userTime, residentMemory")
    terminal.sees(r"^ q leave  \? help")
    terminal.sees(r"^ qmf\.host:process +\d+ objects")
    terminal.sees(r"^ *\d+ +\d+ +\S+")
    terminal.child.send("/python")
    terminal.sees(r"^filter: python")
    terminal.child.send("\r")
    terminal.sees(r"/python: \d+ shown")
    terminal.child.send("\x03")
    terminal.ready()
    assert any(line.startswith("qmf.host:process, ") for line in terminal.lines)
    terminal.enter("agents")
    terminal.sees(r"^1 agent$")
    terminal.ready()
    terminal.leave()


def test_watch_shows_the_rates_of_an_object_and_q_ends_it(terminal: Terminal) -> None:
    terminal.enter("watch -n 0.3 networkinterface:lo")
    terminal.sees(r"^bytesSent +[\d,.]+ .* [\d,.]+ ")
    terminal.child.send("q")
    terminal.ready()
    terminal.leave()


@pytest.mark.parametrize("size", [(40, 10), (24, 4), (200, 50)])
def test_screens_fit_terminals_of_any_size(terminal: Terminal, size: tuple[int, int]) -> None:
    terminal.enter("watch -n 0.3 process")
    terminal.sees(r"q leave")
    terminal.resize(*size)
    terminal.until(lambda lines: len(lines) == size[1] and "q leave" in lines[-1])
    terminal.child.send("?")
    terminal.sees(r"help" if size[1] < 6 else r"Up Down j k")
    terminal.resize(100, 30)
    terminal.sees(r"one screen; to the first or last row")
    terminal.child.send("q")
    terminal.ready()
    terminal.leave()


def test_lines_instead_of_a_screen(terminal: Terminal) -> None:
    terminal.enter("watch -p -c 2 -n 0.1 memory columns total")
    terminal.ready()
    assert sum("qmf.host:memory, 1 object" in line for line in terminal.lines) == 2
    terminal.leave()


def test_plot_draws_lines(terminal: Terminal) -> None:
    terminal.enter("plot -n 0.2 -s 10 system cpuPercent load1")
    terminal.sees(r"system ")
    lines = terminal.sees(r"[\u2801-\u28ff]{5}")
    assert any(re.search(r"┤", line) for line in lines)
    assert any(re.match(r"\W+ cpuPercent", line) for line in lines)
    terminal.child.send("\x03")
    terminal.ready()
    terminal.leave()


def test_top(terminal: Terminal) -> None:
    terminal.enter("top -n 0.3 -c 3 -l 4 process by residentMemory")
    terminal.sees(r"Top of \d+ objects by residentMemory")
    terminal.ready()
    terminal.leave()


def test_ctrl_c_ends_following_not_the_shell(terminal: Terminal) -> None:
    for line in ("events -f", "heartbeats -f"):
        terminal.enter(line)
        terminal.sees(r"^ q leave")
        terminal.child.send("\x03")
        terminal.ready()
    terminal.leave()


def test_history_is_searched(terminal: Terminal) -> None:
    terminal.enter("list memory")
    terminal.sees(r"physical")
    terminal.ready()
    terminal.child.send("\x12mem")
    terminal.sees(r"reverse-i-search\)`mem': list memory")
    terminal.child.send("\x03")
    terminal.ready()
    terminal.leave()


@pytest.mark.parametrize("columns", [40, 60])
def test_narrow_terminals(url: str, tmp_path: Path, columns: int) -> None:
    with Terminal(["-b", url], environment(tmp_path, NO_COLOR="1"), columns=columns, rows=24) as terminal:
        terminal.ready()
        for line, pattern in (
            ("list filesystem", r"^ *101"),
            ("show 101", r"^agent"),
            ("help agents", r"Usage: agents"),
            ("tree filesystem", r"filesystem /"),
        ):
            terminal.enter(line)
            terminal.sees(pattern)
            terminal.ready()
            assert all(cell_len(text) <= columns for text in terminal.lines)
        for line, pattern in (("watch -n 0.2 101", r"q leave"), ("plot -n 0.2 system load1", r"every 0\.2 s")):
            terminal.enter(line)
            terminal.sees(pattern)
            terminal.child.send("q")
            terminal.ready()
        terminal.leave()


def test_long_output_goes_through_the_pager(url: str, tmp_path: Path) -> None:
    with Terminal(["-b", url], environment(tmp_path, PAGER="less"), rows=20) as terminal:
        terminal.ready()
        terminal.enter("schema process")
        terminal.sees(r"^:$")
        assert terminal.lines[0].startswith("Class qmf.host:Process")
        terminal.child.send("q")
        terminal.ready()
        terminal.enter("set pager off")
        terminal.ready()
        terminal.enter("schema process")
        terminal.ready()
        terminal.leave()


# -- scripts -----------------------------------------------------------------------------------------------------------


def test_files_and_commands_in_order(url: str, tmp_path: Path) -> None:
    script = tmp_path / "night.qmf"
    script.write_text("! every night\nlist memory\n# and\nalias m list memory\nm columns total\n")
    done = run(tmp_path, "-b", url, "--csv", "-c", "list memory columns name", "-f", str(script))
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "id,index,name"
    assert lines[2].startswith("id,package,class,agent,broker,object,index,created,updated,name")
    assert lines[4] == "id,index,total"
    assert done.stderr.splitlines() == ["m stands for: list memory"]


def test_the_broker_of_a_session_with_one(url: str, tmp_path: Path) -> None:
    path = tmp_path / "memory.json"
    done = run(tmp_path, "-b", url, "--json", "-c", f"list memory where broker = {url}", "-c", f"export memory {path}")
    assert json.loads(done.stdout)["index"] == "physical"
    assert [row["broker"] for row in json.loads(path.read_text())] == [url]


def test_a_script_argument_and_its_failures(url: str, tmp_path: Path) -> None:
    script = tmp_path / "x.qmf"
    script.write_text("nosuch\nlist memory\n")
    done = run(tmp_path, "-b", url, str(script))
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {script}, line 1: no command 'nosuch'")
    assert "physical" in done.stdout
    done = run(tmp_path, "-b", url, "-x", str(script))
    assert (done.returncode, done.stdout) == (1, "")


def test_settings_choose_the_output_and_options_the_last_word(url: str, tmp_path: Path) -> None:
    folder = tmp_path / "qmf-shell"
    folder.mkdir()
    (folder / "config.toml").write_text(f'output = "json"\nbrokers = ["{url}"]\n[aliases]\nm = "list memory"\n')
    assert json.loads(run(tmp_path, "-c", "m").stdout)["index"] == "physical"
    assert "Index" in run(tmp_path, "--table", "-c", "m").stdout


def test_bulk_calls_need_a_yes_without_a_terminal(url: str, tmp_path: Path) -> None:
    done = run(tmp_path, "-b", url, "-c", "call process where pid > 0 nosuch", "-c", "call -y agent all echo 1 x")
    assert done.returncode == 1
    assert "has no method" in done.stderr
    assert "echo on 1 object: 1 done, 0 failed" in done.stdout


def test_export_of_a_real_class(url: str, tmp_path: Path) -> None:
    path = tmp_path / "processes.json"
    selection = "where residentMemory > 0 sort residentMemory desc limit 3"
    done = run(tmp_path, "-b", url, "-c", f"export process {path} {selection}")
    assert done.stdout == f"3 objects written to {path}\n"
    sizes = [row["residentMemory"]["value"] for row in json.loads(path.read_text())]
    assert sizes == sorted(sizes, reverse=True)


# -- several brokers ---------------------------------------------------------------------------------------------------


def test_several_brokers(url: str, tmp_path: Path) -> None:
    with EmbeddedBroker() as second, EmbeddedHostAgent(second.url, 0.5), EmbeddedBroker() as third:
        lost = third.url
        third.close()
        args = ["-b", url, "-b", second.url, "-b", lost, "--timeout", "5"]
        done = run(tmp_path, *args, "--json", "-c", "list memory", "-c", "show 101 102", "-c", "call 102 echo")
        listed, shown = ([json.loads(line) for line in done.stdout.splitlines()[at : at + 2]] for at in (0, 2))
        assert [row["id"] for row in listed] == [row["id"] for row in shown] == [101, 102]
        assert sorted(row["broker"] for row in listed) == sorted([url, second.url])
        assert f"incomplete: broker {lost} did not answer" in done.stderr
        assert done.returncode == 1
        # All commands report it in the same way.
        done = run(tmp_path, *args, "-c", "agents", "-c", "heartbeats", "-c", "list memory")
        reports = [line for line in done.stderr.splitlines() if line.startswith("error: incomplete: broker")]
        assert (done.returncode, len(reports), len(set(reports))) == (1, 3, 1), done.stderr
        done = run(tmp_path, *args, "--json", "-c", f"list memory where broker = {url}")
        assert json.loads(done.stdout)["broker"] == url
        with Terminal(args, environment(tmp_path)) as terminal:
            terminal.ready()
            terminal.sees(rf"No connection to {lost} yet")
            terminal.leave()
    done = run(tmp_path, "-b", lost, "-b", second.url, "-c", "list", "--timeout", "5")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
