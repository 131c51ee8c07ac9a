"""Why a broker with rules has denied what the server asked for just now."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence

from qmf.errors import QmfError, RemoteError
from qmf.protocol import ErrorCode
from qmf.web.consoles import WebConsole

#: The class of objects that explain, and their method.
_PACKAGE, _CLASS, _METHOD = "qmf.security", "access", "explainDenials"
#: Seconds for the answer: somebody waits for the error itself.
_TIMEOUT = 3.0


async def explain(client: WebConsole, error: QmfError) -> Sequence[str]:
    """The deciding line of a broker's rules, and the smallest change that would allow what was asked for.

    Args:
        client: the server's console, whose user was denied something.
        error: that it got.

    Returns:
        Nothing where the error is another one, and where no broker explains it to this user.
    """
    if not isinstance(error, RemoteError) or error.code != ErrorCode.FORBIDDEN:
        return ()
    with contextlib.suppress(QmfError):  # the reason itself is known without it
        for access in await client.objects(_CLASS, package=_PACKAGE, timeout=_TIMEOUT):
            if access.agent == error.agent:
                return _lines(await access.call(_METHOD, userId="", count=1))
    return ()


def _lines(outputs: Mapping[str, object]) -> Sequence[str]:
    denials = outputs.get("denials")
    if not isinstance(denials, list) or not denials or not isinstance(denials[0], Mapping):
        return ()
    decision, change = denials[0].get("decision"), denials[0].get("change")
    return [f"Decided by {decision}", *([f"To allow it, {change}"] if change else [])]
