"""`columns`: the values of a class that are shown by default."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest
from qmf_shell.render.styles import OutputStyle
from qmf_shell.session.column_memory import ColumnMemory, ColumnMemoryError, read_columns
from qmf_shell.session.context import Context
from shell.fakes import FILESYSTEM, FakeBackend, filesystem
from shell.line_runner import failure, printed, run

from qmf.schema import TYPES, Statistic
from qmf.views.columns import important_statistics


def test_a_choice_applies_to_lists_and_views(context: Context) -> None:
    printed(context, "columns filesystem label, openFiles")
    assert printed(context, "list filesystem")[1].split() == ["ID", "Index", "label", "openFiles"]
    assert printed(context, "watch -c 1 filesystem")[1].split() == ["ID", "Index", "label", "openFiles"]
    assert printed(context, "list filesystem columns uptime")[1].split() == ["ID", "Index", "uptime"]
    assert printed(context, "columns")[-1].split() == ["org.example", "filesystem", "label,", "openFiles"]
    assert printed(context, "columns filesystem")[-1].split()[-2:] == ["label,", "openFiles"]


def test_a_choice_is_forgotten(context: Context) -> None:
    assert "default columns" in printed(context, "columns filesystem")[0]
    printed(context, "columns filesystem label")
    assert "default columns again" in printed(context, "columns -d filesystem")[0]
    assert printed(context, "columns") == ["No columns are chosen for any class."]


def test_mistakes(context: Context) -> None:
    assert "openFiles" in failure(context, "columns filesystem openFile")
    assert "takes no columns" in failure(context, "columns -d filesystem label")
    assert "filesystem" in failure(context, "columns filesystm label")
    assert context.columns.chosen == {}


def test_programs_get_all_values_whatever_was_chosen(context: Context) -> None:
    run(context, "columns filesystem label")
    line, _ = run(context, "list filesystem", style=OutputStyle.JSON).lines
    assert '"openFiles": {"value": 12, "high": 20, "low": 3}' in line
    assert '"bytesRead": 1234567' in line


def test_a_choice_lasts(context: Context, tmp_path: Path) -> None:
    path = tmp_path / "state" / "columns.json"
    context.columns = read_columns(path)
    printed(context, "columns filesystem label, openFiles")
    assert read_columns(path).names(("org.example", "filesystem")) == ("label", "openFiles")
    printed(context, "columns -d filesystem")
    assert read_columns(path).chosen == {}
    assert [item.name for item in path.parent.iterdir()] == ["columns.json"]


def test_a_file_that_is_not_valid_is_named(tmp_path: Path) -> None:
    path = tmp_path / "columns.json"
    for text in ("{", "[]"):
        path.write_text(text)
        with pytest.raises(ColumnMemoryError, match=r"columns\.json is not valid"):
            read_columns(path)
    path.write_text('{"org.example:filesystem": ["label"], "x": 3, "a:b": "c"}')
    assert read_columns(path).chosen == {("org.example", "filesystem"): ("label",)}


def test_a_choice_that_cannot_be_kept_holds_for_the_session(context: Context, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    context.columns = ColumnMemory(tmp_path / "file" / "columns.json")
    assert "not kept beyond this session" in failure(context, "columns filesystem label")
    assert context.columns.names(("org.example", "filesystem")) == ("label",)


def test_statistics_that_differ_come_first() -> None:
    one = filesystem("/")
    names = important_statistics([FILESYSTEM], [one.values])
    assert names == ["bytesRead", "openFiles", "latency", "uptime"]
    other = attrs.evolve(one, values={**one.values, "uptime": 5, "bytesRead": 0, "openFiles": 0})
    alike = attrs.evolve(one, values={**one.values, "bytesRead": 0})
    assert important_statistics([FILESYSTEM], [alike.values, alike.values]) == [
        "openFiles",
        "latency",
        "uptime",
        "bytesRead",
    ]
    assert important_statistics([FILESYSTEM], [one.values, other.values], 2) == ["bytesRead", "openFiles"]
    assert important_statistics([FILESYSTEM], [alike.values, other.values], 2) == ["openFiles", "uptime"]


def test_statistics_that_are_zero_are_shown_only_if_there_are_few_others() -> None:
    names = ("a", "b", "c", "d", "e", "f")
    schema = attrs.evolve(FILESYSTEM, statistics=tuple(Statistic(name=name, type=TYPES["count32"]) for name in names))
    one = attrs.evolve(filesystem("/"), schema=schema, values={**dict.fromkeys(names, 0), "c": 7})
    assert important_statistics([schema], [one.values]) == ["c", "a", "b", "d"]
    more = attrs.evolve(one, values={**dict.fromkeys(names, 1), "f": 0})
    assert important_statistics([schema], [more.values, more.values]) == ["a", "b", "c", "d", "e"]


def test_wide_shows_statistics_with_all_their_values(context: Context) -> None:
    lines = printed(context, "list filesystem wide")
    assert lines[1].split() == ["ID", "Index", "openFiles", "latency", "bytesRead", "uptime"]
    assert "12 (high 20, low 3)" in lines[-1]
    assert "3.2ms (min 80µs, max 12.5ms, 4 samples)" in lines[-1]


def test_a_remembered_value_that_the_class_no_longer_has_is_left_out(context: Context, backend: FakeBackend) -> None:
    backend.records = [filesystem("/")]
    context.columns.chosen["org.example", "filesystem"] = ("gone", "label")
    assert printed(context, "list filesystem")[1].split() == ["ID", "Index", "label"]
    context.columns.chosen["org.example", "filesystem"] = ("gone",)
    assert "bytesRead" in printed(context, "list filesystem")[1]
