"""What methods refuse, with qpidd's codes; the texts begin with qpidd's, and say more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Never

from qmf.agent import ErrorCode, MethodError

#: qpidd's texts, by code.
_TEXTS = {
    ErrorCode.UNKNOWN_OBJECT: "UnknownObject",
    ErrorCode.NOT_IMPLEMENTED: "NotImplemented",
    ErrorCode.INVALID_PARAMETER: "InvalidParameter",
}


def refusal(code: ErrorCode, reason: str) -> MethodError:
    """An error with one of qpidd's own codes and its text, and the reason."""
    return MethodError(f"{_TEXTS[code]}: {reason}", code)


def not_implemented(name: str, reason: str = "") -> Callable[..., Never]:
    """A method that raises `MethodError`.

    Args:
        name: class and method, as in ``Session.close``.
        reason: why; by default that qpidd has none either.
    """

    def refuse(*_args: object, **_kwargs: object) -> Never:
        raise refusal(ErrorCode.NOT_IMPLEMENTED, f"{name}: {reason or 'qpidd has none, either'}")

    return refuse
