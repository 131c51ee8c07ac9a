"""Commands by name."""

from __future__ import annotations

import pytest
from qmf_shell.commands import standard
from qmf_shell.parsing.registry import Registry, UnknownCommandError


def test_errors_of_unknown_commands_list_similar_ones() -> None:
    with pytest.raises(UnknownCommandError, match="did you mean list"):
        standard().find("lits")
    with pytest.raises(UnknownCommandError, match="`help` lists them"):
        standard().find("frobnicate")


def test_names_are_unique() -> None:
    quit_ = standard().find("quit")
    with pytest.raises(ValueError, match="two commands"):
        Registry(lambda: [quit_, quit_]).find("quit")


def test_any_case_and_aliases() -> None:
    registry = standard()
    assert registry.find("LIST").name == "list"
    assert registry.find("exit") is registry.find("quit")
