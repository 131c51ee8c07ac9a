"""docs/shell.md describes all commands, settings and views."""

from __future__ import annotations

import re
from argparse import ArgumentParser
from pathlib import Path

import pytest
from qmf_shell import printevents, stat
from qmf_shell.commands import standard
from qmf_shell.main import build_parser
from qmf_shell.settings import SETTINGS, read_settings

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "shell.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [command.name for command in standard()])
def test_every_command_is_described(name: str) -> None:
    assert re.search(rf"`{name}\b|^qmf> {name}\b|`.*\b{name}\b.*`", TEXT, re.MULTILINE)


def test_the_settings_in_the_text_are_the_defaults(tmp_path: Path) -> None:
    block = re.search(r"```toml\n(.*?)```", TEXT, re.DOTALL)
    assert block is not None
    path = tmp_path / "config.toml"
    path.write_text(block[1])
    assert read_settings(path) == read_settings(None)
    assert all(f"\n{choice.name} = " in block[1] for choice in SETTINGS)


@pytest.mark.parametrize("view", stat.VIEWS)
def test_every_view_is_described(view: str) -> None:
    assert f"`{view}`" in TEXT


@pytest.mark.parametrize("parser", [build_parser(), printevents.build_parser(), stat.build_parser()])
def test_every_option_has_help(parser: ArgumentParser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    options = re.findall(r"^  (-.*)\n( {20,}\S)?", parser.format_help(), re.MULTILINE)
    assert len(options) > 5
    # Help is beside an option, or below it where the option is long.
    assert all(below or re.search(r"\S {2,}\S", option) for option, below in options)
