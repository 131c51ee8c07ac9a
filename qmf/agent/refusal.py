"""How a request ends with a "no": what the agent refuses by itself, and what a method's author raises."""

from __future__ import annotations

from qmf.errors import CallerError
from qmf.protocol import ErrorCode, ExceptionResponse

#: Characters of an exception's text that go to the console; the log has all of it.
MAX_TEXT = 1000


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


class Refusal(Exception):
    """Ends the handling of a request with an exception message; never leaves the agent."""

    def __init__(self, code: int, text: str) -> None:
        self.code = code
        self.text = text
        super().__init__(code, text)

    @property
    def response(self) -> ExceptionResponse:
        """The answer."""
        return ExceptionResponse(text=self.text[:MAX_TEXT], code=self.code)


def one_line(error: BaseException) -> str:
    """What an exception says, in one line; its kind where that alone would tell nothing."""
    lines = str(error).strip().splitlines()
    kind = type(error).__name__
    if not lines:
        return kind
    return f"{kind}: {lines[0]}" if isinstance(error, KeyError) else lines[0]
