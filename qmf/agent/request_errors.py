"""How a request ends with a "no": what the agent refuses by itself, and what a method's author raises."""

from __future__ import annotations

import traceback

from qmf.errors import CallerError
from qmf.protocol import ErrorCode, ExceptionResponse

#: Characters of an exception's text that go to the console; the log has all of it.
MAX_TEXT = 1000

#: Name of the value that holds a traceback, and its characters: the end tells where it happened.
TRACEBACK = "traceback"
MAX_TRACEBACK = 16_000


class MethodError(CallerError):
    """Raised by a method, or by `_qmf_set_property`, to tell the console why it failed.

    Attributes:
        text: for people.
        code: for programs: a number from `ErrorCode.METHOD` on, or another `ErrorCode`.
    """

    def __init__(self, text: str, code: int | None = None) -> None:
        """Make the error.

        Args:
            text: what went wrong.
            code: 0 to 4294967295; None means `ErrorCode.EXCEPTION`.
        """
        self.text = text
        self.code = int(ErrorCode.EXCEPTION if code is None else code)
        super().__init__(text, code)

    def __str__(self) -> str:
        return self.text


class RequestRefused(Exception):
    """Ends the handling of a request with an exception message; never leaves the agent.

    Attributes:
        code, text: what the console gets.
        fault: the error of the program that is behind it, or None where the console is to blame.
    """

    def __init__(self, code: int, text: str, fault: BaseException | None = None) -> None:
        self.code = code
        self.text = text
        self.fault = fault
        super().__init__(code, text)

    def response(self, *, debug: bool = False) -> ExceptionResponse:
        """The answer; with `debug` it has the fault's traceback in a value of its own."""
        values: dict[str, object] = {}
        if debug and self.fault is not None:
            values[TRACEBACK] = "".join(traceback.format_exception(self.fault))[-MAX_TRACEBACK:]
        return ExceptionResponse(text=self.text[:MAX_TEXT], code=self.code, values=values)


def one_line(error: BaseException) -> str:
    """What an exception says, in one line; its kind where that alone would tell nothing."""
    lines = str(error).strip().splitlines()
    kind = type(error).__name__
    if not lines:
        return kind
    return f"{kind}: {lines[0]}" if isinstance(error, KeyError) else lines[0]
