"""Numbers with units, as people read them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.views.units import brief_quantity, full_quantity, heading_unit, parse_number, quantity_text, rate_text, scale


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (999.6, "1 kB"),
        (1000, "1 kB"),
        (12_500_000, "12.5 MB"),
        (999_950_000, "1 GB"),
        (-1_028_243_456, "-1.03 GB"),
        (2**63, "9.22 EB"),
        (10**23, "100,000 EB"),
        (10**24, "1e+24 B"),
        (0.5, "0.5 B"),
        (0.0001, "0.0001 B"),
        (math.inf, "inf B"),
        (math.nan, "nan B"),
    ],
)
def test_prefixes(value: float, text: str) -> None:
    assert scale(value, "B") == text


@pytest.mark.parametrize(
    ("value", "unit", "brief", "full", "exact"),
    [
        (12_500_000, "octet", "12.5 MB", "12.5 MB", "12,500,000 octets"),
        (54_162, "octet/second", "54.2 kB/s", "54,162 B/s", "54,162 octets/s"),
        (3600, "megahertz", "3.6 GHz", "3.6 GHz", "3,600 megahertz"),
        (10_234, "message", "10.2 k", "10,234 messages", "10,234 messages"),
        (9_214, "message", "9,214", "9,214 messages", "9,214 messages"),
        (1, "message", "1", "1 message", "1 message"),
        (12.345, "percent", "12.3 %", "12.345 %", "12.345 %"),
        (97_925, "second", "1d 3h", "1d 3h 12m 5s", "97,925 seconds"),
        (2, "switch", "2", "2 switches", "2 switches"),
        (2_000_000, None, "2 M", "2,000,000", "2,000,000"),
        (0.004, None, "0.004", "0.004", "0.004"),
    ],
)
def test_three_forms(value: float, unit: str | None, brief: str, full: str, exact: str) -> None:
    assert brief_quantity(value, unit) == brief
    assert full_quantity(value, unit) == full
    assert quantity_text(value, unit) == exact


@pytest.mark.parametrize(
    ("rate", "unit", "text", "exact"),
    [
        (3214.0, "message", "+3.21 k/s", "+3,214/s"),
        (54_162.0, "octet", "+54.2 kB/s", "+54,162/s"),
        (0.0, None, "+0/s", "+0/s"),
        (-2.5, None, "-2.5/s", "-2.5/s"),
    ],
)
def test_rates(rate: float, unit: str | None, text: str, exact: str) -> None:
    assert rate_text(rate, unit) == text
    assert rate_text(rate, unit, exact=True) == exact


@pytest.mark.parametrize(
    ("unit", "shortened", "exact"),
    [
        ("message", "messages", "messages"),
        ("octet", "", "octets"),
        ("second", "", "seconds"),
        ("percent", "", ""),
        (None, "", ""),
    ],
)
def test_headings_name_the_units_that_cells_do_not(unit: str | None, shortened: str, exact: str) -> None:
    assert heading_unit(unit) == shortened
    assert heading_unit(unit, exact=True) == exact


@given(st.integers(-(2**64), 2**64) | st.floats(1, 1e18))
def test_about_three_digits_remain(value: float) -> None:
    text = scale(value).replace(",", "")
    number, _, prefix = text.partition(" ")
    size = 1000.0 ** ("", "k", "M", "G", "T", "P", "E").index(prefix)
    assert float(number) * size == pytest.approx(value, rel=0.006)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("-3", -3),
        ("+2.5", 2.5),
        ("10k", 10_000),
        ("1.5 M", 1_500_000),
        ("1Ki", 1024),
        ("1ki", 1024),
        ("5Mi", 5 * 2**20),
        ("2Ti", 2 * 2**40),
        ("18446744073709551615", 2**64 - 1),
    ],
)
def test_numbers_of_users(text: str, value: float) -> None:
    assert parse_number(text) == value
    assert isinstance(parse_number(text), type(value))


@pytest.mark.parametrize("text", ["", "k", "1K", "1m", "1kk", "1e3", "0x1", "1,000", "²", "1" * 5000])
def test_what_is_no_number(text: str) -> None:
    with pytest.raises(ValueError, match="must be a number such as"):
        parse_number(text)


@pytest.mark.parametrize(
    ("value", "text"), [(1000, "1,000 B"), (1024, "1 KiB"), (1_610_612_736, "1.5 GiB"), (-2048, "-2 KiB")]
)
def test_binary_prefixes_for_what_is_published_so(value: int, text: str) -> None:
    assert scale(value, "B", binary=True) == text


def test_a_percentage_has_no_prefix() -> None:
    assert brief_quantity(204_800, "percent") == "204,800 %"
