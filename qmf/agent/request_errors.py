"""Errors that answer a request: raised by the agent, or by the author of a method."""

from __future__ import annotations

import traceback

from qmf.errors import CallerError
from qmf.protocol import ErrorCode, ExceptionResponse

#: Characters of an exception's text that go to the console; the log has all of it.
MAX_TEXT = 1000

#: Name of the value with a traceback, and its characters: the end of a traceback matters most.
TRACEBACK = "traceback"
MAX_TRACEBACK = 16_000


class MethodError(CallerError):
    """Raised by a method, or by `_qmf_set_property`, to answer the console with an error.

    Attributes:
        text: for people.
        code: for programs: a number from `ErrorCode.METHOD` on, or another `ErrorCode`.
    """

    def __init__(self, text: str, code: int | None = None) -> None:
        """Make the error.

        Args:
            text: for people.
            code: 0 to 4294967295; None means `ErrorCode.EXCEPTION`.
        """
        self.text = text
        self.code = int(ErrorCode.EXCEPTION if code is None else code)
        super().__init__(text, code)

    def __str__(self) -> str:
        return self.text


class RequestRefused(Exception):
    """Ends a request with an exception message to the console; never leaves the agent.

    Attributes:
        code, text: of the exception message.
        fault: the error of the program that is the cause, or None for an error of the console.
    """

    def __init__(self, code: int, text: str, fault: BaseException | None = None) -> None:
        self.code = code
        self.text = text
        self.fault = fault
        super().__init__(code, text)

    def response(self, *, debug: bool = False) -> ExceptionResponse:
        """The exception message; with `debug`, the traceback of the fault is in a value of its own."""
        values: dict[str, object] = {}
        if debug and self.fault is not None:
            values[TRACEBACK] = "".join(traceback.format_exception(self.fault))[-MAX_TRACEBACK:]
        return ExceptionResponse(text=self.text[:MAX_TEXT], code=self.code, values=values)


def one_line(error: BaseException) -> str:
    """The text of an exception in one line; with its class if the text alone would be unclear."""
    lines = str(error).strip().splitlines()
    kind = type(error).__name__
    if not lines:
        return kind
    return f"{kind}: {lines[0]}" if isinstance(error, KeyError) else lines[0]
