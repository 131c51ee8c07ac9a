"""`watch`: objects as a table that is refreshed repeatedly, with changes marked and rates of counters."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import attrs

from qmf.schema import ClassKey
from qmf.views.objects import ObjectView
from qmf_shell.commands.list import LIST
from qmf_shell.objects.lookup import matching_classes
from qmf_shell.objects.selecting import compile_selection, find_objects
from qmf_shell.parsing.command import (
    ALL,
    EXACT,
    PLAIN,
    AnyCommand,
    BoundArguments,
    Command,
    Option,
    Parameter,
    ParameterKind,
)
from qmf_shell.parsing.selection import ParsedSelection, parse_selection
from qmf_shell.results.result import LiveView, Result, ResultGroup, Table
from qmf_shell.screens.start import screen_of
from qmf_shell.session.context import Context
from qmf_shell.session.object_names import class_name, class_names

if TYPE_CHECKING:
    from qmf_shell.screens.opening import PageFactory
    from qmf_shell.screens.state import Page

Frames = Callable[[], Result]
"""Makes the next frame of a view."""

VIEW_OPTIONS = (
    Option(("-n", "--interval"), "seconds between refreshes (2)", "SECONDS"),
    Option(("-c", "--count"), "end after so many frames; by default, at Ctrl-C or q", "COUNT"),
    EXACT,
    ALL,
)
#: For agents whose schema does not distinguish counters from other numbers.
RATES = Option(("-r", "--rates"), "treat all integers as counters")


def run(context: Context, args: BoundArguments) -> Result:
    """Start the view."""
    if not args.words:
        view = live_view(context, WATCH, args, lambda: LIST.handler(context, BoundArguments()))
        return screen_of(context, args, view, lambda: _pages(context, args).classes())
    keys = matching_classes(context, args.texts[0])
    selection = parse_selection(args.words[1:]) if keys else ParsedSelection()
    only = _only_objects(context, keys) if selection == ParsedSelection() else []
    if keys and not selection.ids and not only:
        return _watch_class(context, args, keys, selection)
    targets = only or find_objects(context, selection.ids or args.texts, classes=keys)

    def frames() -> Frames:
        from qmf_shell.screens.page_frames import value_frames

        return value_frames(_pages(context, args), targets)

    view = live_view(context, WATCH, args, frames_made_first(frames))
    return screen_of(context, args, view, lambda: _pages(context, args).values(targets))


def _watch_class(
    context: Context, args: BoundArguments, keys: Sequence[ClassKey], selection: ParsedSelection
) -> Result:
    """The view of the objects of a class, or of several with the same name."""

    def frames() -> Frames:
        from qmf_shell.screens.page_frames import object_frames

        return object_frames(_pages(context, args), keys, selection)

    def page() -> Page:
        pages = _pages(context, args)
        return pages.classes(names) if len(names) > 1 else pages.objects(pages.spec_of(keys, selection))

    def check() -> None:
        if len(names) == 1:
            compile_selection(context, keys, selection)

    names = class_names(keys)
    view = live_view(context, WATCH, args, frames_made_first(frames))
    # Mistakes in the selection are found before the terminal changes.
    return screen_of(context, args, view, page, check=check)


def _only_objects(context: Context, keys: Sequence[ClassKey]) -> Sequence[ObjectView]:
    """The only object of each of some classes, which the class stands for; none if a class has several."""
    found = context.objects(class_names(keys)) if keys else ()
    return found if len({class_name(item.identity) for item in found}) == len(found) else ()


def _pages(context: Context, args: BoundArguments) -> PageFactory:
    from qmf_shell.screens.opening import PageFactory

    return PageFactory(context, _interval(context, WATCH, args), "rates" in args.options)


def frames_made_first(make: Callable[[], Frames]) -> Frames:
    """The frames of pages, which are made for the first one: so their mistakes are errors of the view."""
    made = functools.cache(make)
    return lambda: made()()


def live_view(context: Context, command: AnyCommand, args: BoundArguments, frame: Callable[[], Result]) -> LiveView:
    """A view with the interval and count of the options `VIEW_OPTIONS`."""
    count = command.count(args, "count", 0)
    return LiveView(
        (lambda: _exactly(frame())) if "exact" in args.options else frame,
        _interval(context, command, args),
        count or None,
    )


def _interval(context: Context, command: AnyCommand, args: BoundArguments) -> float:
    return command.seconds(args, "interval", context.settings.interval)


def _exactly(result: Result) -> Result:
    """The result with every digit of its numbers."""
    if isinstance(result, ResultGroup):
        return attrs.evolve(result, parts=tuple(map(_exactly, result.parts)))
    return attrs.evolve(result, exact=True) if isinstance(result, Table) else result


WATCH = Command(
    name="watch",
    usage=(
        "watch [-n SECONDS] [-c COUNT] [-p]",
        "watch [-n SECONDS] [-c COUNT] [-p] [-r] ID...",
        "watch [-n SECONDS] [-c COUNT] [-pr] CLASS [where CONDITION] [sort NAME] [columns NAME...] [limit COUNT]",
    ),
    summary="Show classes or objects, refreshed repeatedly",
    help=(
        "Values that changed since the previous frame are marked. Counters show their growth per second; the reset of "
        "a counter is noticed. Which values are counters is known for qpidd and for agents of this project; -r treats "
        "all integers as counters.",
        "Of a class, the columns of `list` are shown; columns selects others. An object that no longer exists keeps "
        "its last values and is marked as gone. While the connection is lost, the last frame stays.",
        "Ctrl-C or q ends it. In a file or pipe, the frames follow each other.",
    ),
    examples=(
        ("watch 101", "all values of one object"),
        ("watch -n 5 queue where consumers = 0 columns msgDepth, byteDepth", "some objects of a class"),
        ("watch -c 3 process sort cpuPercent desc limit 5", "three frames"),
    ),
    parameters=(
        Parameter("ID", ParameterKind.TARGET, "short id, range, name, index, or a class"),
        Parameter("SELECTION", ParameterKind.SELECTION, "more ids; of a class, a condition and so on", repeated=True),
    ),
    options=(*VIEW_OPTIONS, RATES, PLAIN),
    handler=run,
)
