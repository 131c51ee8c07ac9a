"""Scripts of scripted agents."""

from __future__ import annotations

from collections.abc import Callable

from qmf.protocol import (
    Content,
)


def only(kind: type, content: Content) -> Callable[[Content], Content | None]:
    """A script that answers requests of one kind with `content`."""
    return lambda request: content if isinstance(request, kind) else None
