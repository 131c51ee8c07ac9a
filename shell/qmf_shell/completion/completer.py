"""Connects our completion to prompt_toolkit."""

from __future__ import annotations

from collections.abc import Iterator

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from qmf_shell.completion.analysis import analyse
from qmf_shell.completion.data import CompletionData
from qmf_shell.completion.hints import HintPart, hint_for
from qmf_shell.completion.kinds import (
    AnyOf,
    ArgumentNames,
    ArgumentValue,
    CommandNames,
    CompletionKind,
    MethodNames,
    NoCompletion,
    ObjectNames,
    SettableNames,
    SettableValue,
    ValueNames,
)
from qmf_shell.completion.suggestions import suggest
from qmf_shell.render.shortening import shorten_middle
from qmf_shell.session.context import Context
from qmf_shell.session.name_cache import NameRefresher

#: Longest description shown beside a name.
MAX_META = 60
#: Longest name shown; longer ones are cut in the middle, since names of queues often consist of two long ids.
MAX_NAME = 48
#: Kinds for which names of objects are needed.
_NEEDS_OBJECTS = (ObjectNames, MethodNames, ArgumentNames, ArgumentValue, SettableNames, SettableValue, ValueNames)


class LineCompleter(Completer):
    """Suggestions from the latest snapshot. Never waits.

    Attributes:
        pending_text: the text for which Tab was pressed before its names were fetched; None if they were fetched.
    """

    def __init__(self, context: Context, refresher: NameRefresher) -> None:
        self._context = context
        self._refresher = refresher
        self._hinted: tuple[str, CompletionData] | None = None
        self._hint: list[HintPart] = []
        self.pending_text: str | None = None

    @property
    def data(self) -> CompletionData:
        """The data for suggestions at this moment."""
        context = self._context
        aliases = tuple(context.settings.aliases.items())
        contexts = [(item.name, item.urls) for item in context.settings.contexts.by_name.values()]
        return CompletionData(self._refresher.snapshot, context.ids, context.registry, aliases, contexts)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """Completions at the cursor."""
        del complete_event
        text = document.text_before_cursor
        request = analyse(text, self._context.registry, self._context.settings.aliases)
        self.pending_text = text if self._lacks_names(request.kind) else None
        for item in suggest(request, self.data):
            meta = item.meta if len(item.meta) <= MAX_META else f"{item.meta[: MAX_META - 1]}…"
            shown = shorten_middle(item.shown, MAX_NAME)
            yield Completion(item.text, item.start - len(text), display=shown, display_meta=meta)

    def hint(self, text: str) -> list[HintPart]:
        """The hint about `text`. Cached, since it is needed at each redraw."""
        data = self.data
        if self._hinted is None or self._hinted[0] != text or self._hinted[1].snapshot is not data.snapshot:
            self._hint = hint_for(text, data)
            self._hinted = (text, data)
        return self._hint

    def prepare(self, text: str) -> None:
        """Fetch names of objects in the background if one may follow `text`, the line so far. Returns at once."""
        if _needs_objects(analyse(text, self._context.registry, self._context.settings.aliases).kind):
            self._refresher.request_objects()

    def _lacks_names(self, kind: CompletionKind) -> bool:
        if isinstance(kind, CommandNames | NoCompletion):
            return False
        return not self._refresher.snapshot.schemas or (_needs_objects(kind) and not self._refresher.has_objects)


def _needs_objects(kind: CompletionKind) -> bool:
    return any(isinstance(kind, _NEEDS_OBJECTS) for kind in (kind.kinds if isinstance(kind, AnyOf) else (kind,)))
