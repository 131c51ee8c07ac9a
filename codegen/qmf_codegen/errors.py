"""The error of a run, besides invalid schemas and the operating system's errors."""

from __future__ import annotations

from qmf.errors import CallerError


class CodegenError(CallerError):
    """The run cannot do what was requested; the message has the reason in one line."""
