"""What can go wrong in a run, besides invalid schemas and the operating system's own errors."""

from __future__ import annotations

from qmf.errors import CallerError


class CodegenError(CallerError):
    """The run was asked for something that cannot be; the message says what, in one line."""
