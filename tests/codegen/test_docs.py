"""The page about qmf-codegen shows what the program really does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from qmf_codegen.cli import build_parser, main
from qmf_codegen import Format

from qmf.schema import TYPES, Severity

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "codegen.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with the page's two schemas."""
    door, bad = blocks("xml")
    (tmp_path / "door.xml").write_text(door)
    (tmp_path / "bad.xml").write_text(bad)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shown(command: str) -> str:
    """The output of a command, as the page shows it."""
    (found,) = [
        text for block in blocks("console") for line, _, text in [block.partition("\n")] if line == f"$ {command}"
    ]
    return found


@pytest.mark.parametrize(
    ("command", "code"),
    [("qmf-codegen door.xml -o models", 0), ("qmf-codegen door.xml --format xml -o -", 0), ("qmf-codegen bad.xml", 1)],
)
def test_commands_print_what_is_shown(command: str, code: int, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command.split()[1:]) == code
    out, err = capsys.readouterr()
    assert out + err == shown(command)


def test_check_prints_what_is_shown_and_more(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["door.xml", "-o", "models"])
    (here / "door.xml").write_text((here / "door.xml").read_text().replace("Text on the door", "Label of the door"))
    capsys.readouterr()
    assert main(["door.xml", "-o", "models", "--check"]) == 1
    assert capsys.readouterr().out.startswith(shown("qmf-codegen door.xml -o models --check"))


def test_classes_are_those_generated(here: Path) -> None:
    main(["door.xml", "-o", "models"])
    agent, console = blocks("python")
    assert agent in (here / "models" / "door" / "agent.py").read_text()
    assert console in (here / "models" / "door" / "console.py").read_text()


def test_every_type_severity_format_and_option_is_there() -> None:
    terms = set(re.findall(r"`([^`\n]+)`", PAGE))
    assert set(TYPES) <= terms
    assert {item.schema_name for item in Severity} <= terms
    assert {item.value for item in Format} <= terms
    options = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", build_parser().format_help()))
    assert {"-o", "--check", "--from-agent"} <= options
    assert options - {"-h", "--help", "--version"} <= terms
