"""Addresses as values."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.messaging.addresses import Address
from qmf.messaging.addresses.options import Mode
from qmf.messaging.exceptions import MalformedAddress


def test_an_address_is_its_text() -> None:
    address = Address("q/s; {mode: browse}")
    assert address == "q/s; {mode: browse}"
    assert (address.name, address.subject, address.options.mode) == ("q", "s", Mode.BROWSE)
    assert Address(address) is address
    assert str(address) == f"{address}" == "q/s; {mode: browse}"


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda item: pickle.loads(pickle.dumps(item))])
def test_addresses_can_be_copied(again: object) -> None:
    assert callable(again)
    address = again(Address("q/s; {mode: browse}"))
    assert isinstance(address, Address)
    assert (address.name, address.subject, address.options.mode) == ("q", "s", Mode.BROWSE)


def test_special_names() -> None:
    assert [Address(text).temporary for text in ("#", "#; {mode: browse}", "a#")] == [True, True, False]
    assert [Address(text).anonymous for text in ("<null>", "null")] == [True, False]


@given(st.text(min_size=1), st.none() | st.text(min_size=1))
def test_any_name_has_an_address(name: str, subject: str | None) -> None:
    address = Address.of(name, subject)
    assert (address.name, address.subject) == (name, subject)


def test_an_empty_name_has_none() -> None:
    with pytest.raises(MalformedAddress):
        Address("")
