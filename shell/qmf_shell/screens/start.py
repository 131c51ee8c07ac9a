"""How commands start a live screen. Loads none of it: most commands don't need one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from qmf_shell.parsing.command import BoundArguments
from qmf_shell.results.result import LiveScreen, LiveView, Result, ResultStream
from qmf_shell.session.context import Context


def screen_of(
    context: Context,
    args: BoundArguments,
    lines: LiveView | ResultStream,
    page: Callable[[], Any],
    *,
    check: Callable[[], object] = lambda: None,
) -> Result:
    """A screen, unless the user wants lines or a number of frames.

    Args:
        args: may have the options of `parsing.command.PLAIN` and `EXACT`.
        lines: what is shown without a screen.
        page: makes its first page.
        check: raises an error for a mistake of the user, before the terminal changes.
    """
    if "plain" in args.options or (isinstance(lines, LiveView) and lines.count is not None):
        return lines
    check()
    return LiveScreen(lines, page, context, "exact" in args.options)


def frames_of(context: Context, args: BoundArguments, title: str, view: LiveView) -> Result:
    """A screen with the frames of a view that has no rows to work in, unless the user wants lines.

    Args:
        context, args: as of `screen_of`.
        view: makes the frames.
    """

    def page() -> Any:
        from qmf_shell.screens.pages.frames import FramesPage

        return FramesPage(context, title, view)

    return screen_of(context, args, view, page)
