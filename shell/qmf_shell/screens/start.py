"""How commands start a live screen. Loads none of it: most commands don't need one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from qmf_shell.parsing.command import BoundArguments
from qmf_shell.results.result import LiveScreen, LiveView, ResultStream
from qmf_shell.session.context import Context


def screen_of(
    context: Context,
    args: BoundArguments,
    lines: LiveView | ResultStream,
    page: Callable[[], Any],
    *,
    check: Callable[[], object] = lambda: None,
) -> LiveView | ResultStream | LiveScreen:
    """A screen, unless the user wants lines or a number of frames.

    Args:
        context: the session.
        args: may have the options of `parsing.common_options.PLAIN` and `EXACT`.
        lines: what is shown without a screen.
        page: makes its first page.
        check: raises an error for a mistake of the user, before the terminal changes.
    """
    if isinstance(lines, LiveView):
        if "plain" in args.options:
            return attrs.evolve(lines, in_place=False)
        if lines.count is not None:
            return lines
    elif "plain" in args.options:
        return lines
    check()
    return LiveScreen(lines, page, context, "exact" in args.options)
