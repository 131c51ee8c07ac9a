"""What programs import from `qpid.messaging.address`: the parser of addresses."""

from __future__ import annotations

from typing import Any

from qmf.messaging.addresses.parser import parse as _parse
from qmf.messaging.exceptions import MalformedAddress as ParseError

__all__ = ["ParseError", "parse"]


def parse(addr: str) -> tuple[str, str | None, dict[str, Any] | None]:
    """The name, the subject and the options of an address, the options as they are written, not checked.

    Returns:
        None for a subject and for options that the address does not have.

    Raises:
        ParseError: the text is not an address; names line and column.
    """
    parsed = _parse(addr)
    return parsed.name, parsed.subject, parsed.options
