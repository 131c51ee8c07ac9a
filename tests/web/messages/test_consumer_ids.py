"""Ids of consumers: they say all, fit one consumer, and cannot be mistaken."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.web.messages.consumer_ids import MAX_LENGTH, ConsumerOptions, OptionsTooLong, make_id, read_id

OPTIONS = st.builds(
    ConsumerOptions,
    auto_ack=st.booleans(),
    selector=st.none() | st.text(max_size=80),
    durable=st.booleans(),
    name=st.none() | st.text(min_size=1, max_size=40),
    idle_timeout=st.none() | st.integers(1, 86_400_000),
    delete_when_idle=st.booleans(),
)


@given(OPTIONS)
def test_an_id_says_the_options(options: ConsumerOptions) -> None:
    found = make_id("queues/a", options)
    assert read_id("queues/a", found, auto_ack=options.auto_ack) == options
    assert found.isascii()
    assert not set(found) & set("/?#%")
    assert read_id("queues/b", found, auto_ack=options.auto_ack) is None
    assert read_id("queues/a", found, auto_ack=not options.auto_ack) is None


def test_ids_without_options_are_short_and_differ() -> None:
    ids = {make_id("queues/a", ConsumerOptions()) for _ in range(100)}
    assert len(ids) == 100
    assert all(len(id) <= 21 for id in ids)


def test_the_id_of_a_name_is_always_the_same() -> None:
    options = ConsumerOptions(name="mine", durable=True)
    assert make_id("topics/a", options) == make_id("topics/a", options)


@given(st.text(max_size=60))
def test_invented_ids_are_none(text: str) -> None:
    assert read_id("queues/a", text, auto_ack=True) is None


@pytest.mark.parametrize("text", ["", "-", "333", "1.e30-00000000", "1-" + "0" * 5000])
def test_what_is_no_id(text: str) -> None:
    assert read_id("queues/a", text, auto_ack=True) is None


def test_options_have_to_fit_a_url() -> None:
    with pytest.raises(OptionsTooLong, match=f"above {MAX_LENGTH}"):
        make_id("queues/a", ConsumerOptions(selector="x" * MAX_LENGTH))
