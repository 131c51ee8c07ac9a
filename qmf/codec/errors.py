"""The error of the encoders. Decoders raise `qmf.errors.DecodeError`."""

from __future__ import annotations

from qmf.errors import CallerError


class EncodeError(CallerError, ValueError):
    """A value that the encoding cannot hold: of a foreign type, out of its width's range, too long or too deep."""


def escape(value: str) -> bytes:
    """The bytes of text that UTF-8 cannot hold, where they were kept in it as lone surrogates (``surrogateescape``).

    Raises:
        EncodeError: it has other lone surrogates.
    """
    try:
        return value.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        raise EncodeError(f"string with a lone surrogate: {value[:40]!r}") from None


def out_of_range(value: float, name: str) -> EncodeError:
    """The error for a number that its width cannot hold."""
    if isinstance(value, int) and value.bit_length() > 128:  # Python refuses to print very long integers
        return EncodeError(f"an integer of {value.bit_length()} bits is out of the range of {name}")
    return EncodeError(f"{value} is out of the range of {name}")
