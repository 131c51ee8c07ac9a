"""Decimal numbers: known encodings, and all numbers of 34 digits in both directions."""

from __future__ import annotations

import contextlib
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.codec.decimals import decode_decimal, encode_decimal
from qmf.codec.errors import EncodeError

TABLE = [
    ("1", "30400000000000000000000000000001"),
    ("-1", "b0400000000000000000000000000001"),
    ("0", "30400000000000000000000000000000"),
    ("0.10", "303c000000000000000000000000000a"),
    ("Infinity", "78000000000000000000000000000000"),
    ("-Infinity", "f8000000000000000000000000000000"),
    ("NaN", "7c000000000000000000000000000000"),
    ("sNaN", "7e000000000000000000000000000000"),
    ("9999999999999999999999999999999999E+6111", "5fffed09bead87c0378d8e63ffffffff"),
    ("1E-6176", "00000000000000000000000000000001"),
]


@pytest.mark.parametrize(("text", "encoded"), TABLE)
def test_the_table_holds_in_both_directions(text: str, encoded: str) -> None:
    assert encode_decimal(Decimal(text)).hex() == encoded
    assert str(decode_decimal(bytes.fromhex(encoded))) == str(Decimal(text))


@pytest.mark.parametrize(
    ("encoded", "text"),
    [
        ("32800001", "1"),
        ("77f8967f", "9.999999E+96"),
        ("f8000000", "-Infinity"),
        ("7c000000", "NaN"),
        ("6fffffff", "0"),  # 10,485,759 has eight digits
        ("31c0000000000001", "1"),
        ("77fb86f26fc0ffff", "9.999999999999999E+384"),
        ("6c7386f26fc0ffff", "9.999999999999999E+15"),
    ],
)
def test_the_shorter_forms_are_read(encoded: str, text: str) -> None:
    assert decode_decimal(bytes.fromhex(encoded)).normalize() == Decimal(text).normalize() or text == "NaN"
    assert str(decode_decimal(bytes.fromhex(encoded))).startswith("NaN") == (text == "NaN")


@given(st.integers(0, 1), st.integers(0, 10**34 - 1), st.integers(-6176, 6111))
def test_every_number_comes_back_with_its_exponent(sign: int, coefficient: int, exponent: int) -> None:
    value = Decimal((sign, tuple(map(int, str(coefficient))), exponent))
    assert str(decode_decimal(encode_decimal(value))) == str(value)


@given(st.decimals(allow_nan=False))
def test_a_number_comes_back_or_is_refused(value: Decimal) -> None:
    encoded: bytes | None = None
    with contextlib.suppress(EncodeError):
        encoded = encode_decimal(value)
    assert (
        (decode_decimal(encoded) == value) if encoded else len(value.as_tuple().digits) > 34 or value.adjusted() > 999
    )


@given(st.binary(min_size=4, max_size=4) | st.binary(min_size=8, max_size=8) | st.binary(min_size=16, max_size=16))
def test_all_bytes_are_a_number(data: bytes) -> None:
    assert isinstance(decode_decimal(data), Decimal)


@pytest.mark.parametrize(
    "text", ["1E-6210", "1E+6200", "1E+999999", "1E-999999", "12345678901234567890123456789012345"]
)
def test_numbers_that_do_not_fit_are_refused(text: str) -> None:
    with pytest.raises(EncodeError, match="up to 34 digits"):
        encode_decimal(Decimal(text))


@pytest.mark.parametrize(
    ("given_text", "text"), [("1000E-6178", "10E-6176"), ("5E+6120", "5000000000E+6111"), ("0E+9999", "0E+6111")]
)
def test_an_exponent_is_shifted_where_the_number_stays_the_same(given_text: str, text: str) -> None:
    assert str(decode_decimal(encode_decimal(Decimal(given_text)))) == str(Decimal(text))
