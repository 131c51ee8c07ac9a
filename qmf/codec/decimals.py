"""Decimal numbers as AMQP 1.0 encodes them: IEEE 754-2008, with the coefficient as a binary integer.

Source: AMQP 1.0, part 1.6 (decimal32, decimal64, decimal128); IEEE 754-2008, 3.5.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

import attrs

from qmf.codec.errors import EncodeError

_INFINITY, _NAN, _SIGNALLING = 0b11110, 0b11111, 0b111111


@attrs.frozen
class _Format:
    """The form of a decimal number.

    Attributes:
        bits: of the whole number.
        exponent_bits: of the biased exponent.
        bias: what is added to the exponent.
        digits: of the coefficient at most.
    """

    bits: int
    exponent_bits: int
    bias: int
    digits: int

    @property
    def coefficient_bits(self) -> int:
        return self.bits - 1 - self.exponent_bits


#: By the number of bytes.
_FORMATS: Mapping[int, _Format] = {
    4: _Format(32, 8, 101, 7),
    8: _Format(64, 10, 398, 16),
    16: _Format(128, 14, 6176, 34),
}
_LARGEST = _FORMATS[16]
#: Exponents of decimal128.
_MIN_EXPONENT, _MAX_EXPONENT = -_LARGEST.bias, 3 * 2**12 - 1 - _LARGEST.bias


def encode_decimal(value: Decimal) -> bytes:
    """The 16 bytes of a decimal128: the same number, with the same exponent where that is possible.

    A value that is no number (NaN) is sent without its payload.

    Raises:
        EncodeError: it has more than 34 digits, or an exponent that there is not.
    """
    sign, digits, exponent = value.as_tuple()
    if isinstance(exponent, str):
        special = {"F": _INFINITY << 1, "n": _NAN << 1, "N": _SIGNALLING}[exponent]
        return (sign << 127 | special << 121).to_bytes(16)
    fitted = _fit(int("".join(map(str, digits))), exponent)
    if fitted is None:
        raise EncodeError(f"a decimal has up to {_LARGEST.digits} digits and an exponent near 0, not {value!s:.60}")
    coefficient, exponent = fitted
    return (sign << 127 | (exponent + _LARGEST.bias) << _LARGEST.coefficient_bits | coefficient).to_bytes(16)


def _fit(coefficient: int, exponent: int) -> tuple[int, int] | None:
    """The same number with a coefficient and an exponent that decimal128 has; None if there are none."""
    if coefficient == 0:
        return 0, min(max(exponent, _MIN_EXPONENT), _MAX_EXPONENT)
    if exponent > _MAX_EXPONENT + _LARGEST.digits:
        return None
    while (coefficient >= 10**_LARGEST.digits or exponent < _MIN_EXPONENT) and coefficient % 10 == 0:
        coefficient, exponent = coefficient // 10, exponent + 1
    while exponent > _MAX_EXPONENT and coefficient < 10 ** (_LARGEST.digits - 1):
        coefficient, exponent = coefficient * 10, exponent - 1
    fits = coefficient < 10**_LARGEST.digits and _MIN_EXPONENT <= exponent <= _MAX_EXPONENT
    return (coefficient, exponent) if fits else None


def decode_decimal(data: bytes) -> Decimal:
    """The number of 4, 8 or 16 bytes. A coefficient with too many digits counts as 0, as the standard says."""
    form = _FORMATS[len(data)]
    number = int.from_bytes(data)
    sign = number >> form.bits - 1
    combination = number >> form.bits - 6 & 0b11111
    if combination == _INFINITY:
        return Decimal("-Infinity" if sign else "Infinity")
    if combination == _NAN:
        name = "sNaN" if number >> form.bits - 7 & 1 else "NaN"
        return Decimal(f"-{name}" if sign else name)
    bits, shift = form.coefficient_bits, 0
    if combination >> 3 == 0b11:  # a large coefficient: its first bits are 100, and not written
        shift = 2
    exponent = (number >> bits - shift & (1 << form.exponent_bits) - 1) - form.bias
    coefficient = number & (1 << bits - shift) - 1
    if shift:
        coefficient |= 0b100 << bits - shift
    if coefficient >= 10**form.digits:
        coefficient = 0
    return Decimal((sign, tuple(map(int, str(coefficient))), exponent))
