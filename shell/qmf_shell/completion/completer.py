"""prompt_toolkit's view of our completion: text to question, question to names."""

from __future__ import annotations

from collections.abc import Iterator

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from qmf_shell.completion.analysis import analyse
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
from qmf_shell.completion.suggestions import CompletionData, suggest
from qmf_shell.session.context import Context
from qmf_shell.session.name_cache import NameRefresher

#: What shows beside a name is cut here.
META = 60
#: Names that are longer are cut in the middle: queues are often named after two long ids.
NAME = 48
#: Kinds for which names of objects are needed.
_OF_OBJECTS = (ObjectNames, MethodNames, ArgumentNames, ArgumentValue, SettableNames, SettableValue, ValueNames)


class LineCompleter(Completer):
    """Suggestions from the latest snapshot. Never waits.

    Attributes:
        early: the text for which somebody pressed Tab before the names were there; None where they were.
    """

    def __init__(self, context: Context, refresher: NameRefresher) -> None:
        self._context = context
        self._refresher = refresher
        self._hinted: tuple[str, CompletionData] | None = None
        self._hint: list[HintPart] = []
        self.early: str | None = None

    @property
    def data(self) -> CompletionData:
        """What is known at this moment."""
        context = self._context
        aliases = tuple(context.settings.aliases.items())
        return CompletionData(self._refresher.snapshot, context.ids, context.registry, aliases)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """Completions at the cursor."""
        del complete_event
        text = document.text_before_cursor
        request = analyse(text, self._context.registry, self._context.settings.aliases)
        self.early = text if self._lacks(request.kind) else None
        for item in suggest(request, self.data):
            meta = item.meta if len(item.meta) <= META else f"{item.meta[: META - 1]}…"
            yield Completion(item.text, item.start - len(text), display=shortened(item.shown), display_meta=meta)

    def hint(self, text: str) -> list[HintPart]:
        """What the toolbar says about `text`. Asked for with each redraw, so the last answer is kept."""
        data = self.data
        if self._hinted is None or self._hinted[0] != text or self._hinted[1].snapshot is not data.snapshot:
            self._hint = hint_for(text, data)
            self._hinted = (text, data)
        return self._hint

    def prepare(self, text: str) -> None:
        """Have names of objects fetched if `text`, the line so far, is where one could stand. Returns at once."""
        if _of_objects(analyse(text, self._context.registry, self._context.settings.aliases).kind):
            self._refresher.want_objects()

    def _lacks(self, wanted: CompletionKind) -> bool:
        if isinstance(wanted, CommandNames | NoCompletion):
            return False
        return not self._refresher.snapshot.schemas or (_of_objects(wanted) and not self._refresher.has_objects)


def shortened(name: str) -> str:
    """A name for the menu, with its begin and its end."""
    if len(name) <= NAME:
        return name
    end = NAME // 2 - 1
    return f"{name[: NAME - 1 - end]}…{name[-end:]}"


def _of_objects(wanted: CompletionKind) -> bool:
    return any(isinstance(kind, _OF_OBJECTS) for kind in (wanted.kinds if isinstance(wanted, AnyOf) else (wanted,)))
