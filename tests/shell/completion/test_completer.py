"""Completion as prompt_toolkit sees it."""

from __future__ import annotations

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from qmf_shell.completion.completer import LineCompleter
from qmf_shell.completion.suggestions import Suggestion
from qmf_shell.session.context import Context
from qmf_shell.session.name_cache import NameRefresher
from shell.fakes import FakeBackend, filesystem


def completions(completer: LineCompleter, text: str) -> list[tuple[str, int, str]]:
    found = completer.get_completions(Document(text), CompleteEvent())
    return [(item.text, item.start_position, item.display_meta_text) for item in found]


def test_completions_replace_what_was_typed(context: Context, refresher: NameRefresher) -> None:
    completer = LineCompleter(context, refresher)
    assert completions(completer, "lis") == [("list", -3, context.registry.find("list").summary)]
    context.ids.assign(filesystem("/a b").identity)
    assert completions(completer, "show '/a ") == [("101", -4, "filesystem /a b")]


def test_long_names_are_shown_with_both_ends(
    context: Context, refresher: NameRefresher, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"qmf-{'0' * 60}-one"
    item = Suggestion(text=name, start=5, shown=name, meta="")
    monkeypatch.setattr("qmf_shell.completion.completer.suggest", lambda *_: [item])
    (found,) = LineCompleter(context, refresher).get_completions(Document("show "), CompleteEvent())
    assert (found.text, len(found.display_text)) == (name, 48)
    assert found.display_text.startswith("qmf-0")
    assert found.display_text.endswith("0-one")


def test_names_are_fetched_when_one_could_stand_there(
    context: Context, backend: FakeBackend, refresher: NameRefresher
) -> None:
    completer = LineCompleter(context, refresher)
    refresher.start()
    completer.prepare("list ")
    completer.prepare("sho")
    assert backend.asked == []
    completer.prepare("show ")
    assert backend.was_asked.wait(10)
