"""prompt_toolkit's view of our completion: text to question, question to names."""

from __future__ import annotations

from collections.abc import Iterator

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from qmf_shell.completion import ArgumentNames, ArgumentValue, MethodNames, ObjectNames, analyse
from qmf_shell.session.context import Context
from qmf_shell.session.snapshot import Refresher
from qmf_shell.suggestions import suggest

#: What shows beside a name is cut here.
META = 60


class LineCompleter(Completer):
    """Suggestions from the latest snapshot. Never waits: names that are missing come with the next Tab."""

    def __init__(self, context: Context, refresher: Refresher) -> None:
        self._context = context
        self._refresher = refresher

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """Completions at the cursor."""
        del complete_event
        text = document.text_before_cursor
        question = analyse(text, self._context.registry)
        for item in suggest(question, self._refresher.snapshot, self._context.ids, self._context.registry):
            meta = item.meta if len(item.meta) <= META else f"{item.meta[: META - 1]}…"
            yield Completion(item.text, item.start - len(text), display=item.shown, display_meta=meta)

    def prepare(self, text: str) -> None:
        """Have names of objects fetched if `text`, the line so far, is where one could stand. Returns at once."""
        wanted = analyse(text, self._context.registry).wanted
        if isinstance(wanted, ObjectNames | MethodNames | ArgumentNames | ArgumentValue):
            self._refresher.want_objects()
