"""Units are on the disk when they are reported, whole, and are there again when the store is opened anew."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.broker.nodes.recorder import NotStored
from qmf.broker.store.encoding import decode_fields, encode_fields
from qmf.broker.store.errors import StoreError, StoreLocked
from qmf.broker.store.folder import DataFolder
from qmf.broker.store.store import Store
from qmf.broker.store.unit import Definition, DefinitionKind, StoredMessage, Unit
from qmf.codec.types import UInt32
from qmf.errors import DecodeError

QUEUE = Definition(1, DefinitionKind.QUEUE, "orders", {"durable": True, "arguments": {"qpid.max_count": 5}})


@contextlib.asynccontextmanager
async def opened(path: Path) -> AsyncIterator[Store]:
    with DataFolder(path) as folder:
        store = Store(folder)
        store.start()
        try:
            yield store
        finally:
            await store.close()


async def stored(store: Store, unit: Unit) -> None:
    """Submit a unit and wait until it is on the disk."""
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    store.submit(unit, lambda error: done.set_exception(error) if error else done.set_result(None))
    await asyncio.wait_for(done, 30)


def message(id: int, queue: int = 1, data: bytes = b"data", position: int | None = None) -> StoredMessage:
    return StoredMessage(id, queue, id if position is None else position, None, data)


async def test_what_was_reported_is_there_again(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        assert store.next_definition_id() == 1
        await stored(store, Unit(defined=[QUEUE]))
        numbers = [store.next_message_id() for _ in range(3)]
        await stored(store, Unit(messages=[message(number, data=b"%d" % number) for number in numbers]))
        await stored(store, Unit(removed=[numbers[1]]))
    async with opened(tmp_path) as store:
        assert list(store.definitions) == [QUEUE]
    with DataFolder(tmp_path) as folder:
        again = Store(folder)
        assert [each.data for each in again.recover()] == [b"%d" % number for number in (numbers[0], numbers[2])]
        assert again.next_message_id() > numbers[-1]
        assert again.next_definition_id() == 2
        await again.close()


async def test_messages_come_by_queue_and_position(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await stored(store, Unit(messages=[message(1), message(2), message(3, queue=2)]))
        # The message that replaced another has its place.
        await stored(store, Unit(messages=[message(4, position=1)], removed=[1]))
    with DataFolder(tmp_path) as folder:
        again = Store(folder)
        assert [each.id for each in again.recover()] == [4, 2, 3]
        await again.close()


async def test_a_queue_that_is_no_longer_defined_takes_its_messages_along(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await stored(store, Unit(defined=[QUEUE], messages=[message(1), message(2, queue=2)]))
        await stored(store, Unit(undefined=[1]))
    with DataFolder(tmp_path) as folder:
        again = Store(folder)
        assert list(again.definitions) == []
        assert [each.id for each in again.recover()] == [2]
        await again.close()


async def test_units_are_reported_in_their_order(tmp_path: Path) -> None:
    order: list[int] = []
    async with opened(tmp_path) as store:
        for number in range(1, 301):
            store.submit(Unit(messages=[message(number)]), lambda _, number=number: order.append(number))  # type: ignore[misc]
            if number % 50 == 0:
                await asyncio.sleep(0)
        assert store.backlog
    assert order == list(range(1, 301)), "closing waits for what was submitted"


async def test_a_batch_that_fails_leaves_nothing_and_what_must_be_written_is_tried_again(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await stored(store, Unit(messages=[message(1), message(2)]))
        errors: list[NotStored | None] = []
        store.submit(Unit(messages=[message(3)]), errors.append)
        store.submit(Unit(messages=[message(1)]), errors.append)  # the id is taken
        removed: asyncio.Future[NotStored | None] = asyncio.get_running_loop().create_future()
        store.submit(Unit(removed=[1], lasting=True), removed.set_result)
        assert await asyncio.wait_for(removed, 30) is None
        await stored(store, Unit(messages=[message(4)]))
        assert [type(error) for error in errors] == [StoreError, StoreError]
        assert store.failing is None
    with DataFolder(tmp_path) as folder:
        again = Store(folder)
        assert [each.id for each in again.recover()] == [2, 4]
        await again.close()


def test_a_folder_is_held_by_one_process(tmp_path: Path) -> None:
    import os

    with DataFolder(tmp_path), pytest.raises(StoreLocked, match=f"in use by process {os.getpid()}"):
        DataFolder(tmp_path)
    DataFolder(tmp_path).close()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="the data folder cannot be used"):
        DataFolder(tmp_path / "file")


FIELDS = st.dictionaries(
    st.text(max_size=10),
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=10) | st.binary(max_size=10),
        lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text(max_size=5), values, max_size=3),
        max_leaves=8,
    ),
    max_size=5,
)


@given(FIELDS)
def test_fields_keep_their_values(fields: dict[str, object]) -> None:
    assert decode_fields(encode_fields(fields)) == fields


def test_fields_that_are_none_are_refused() -> None:
    assert decode_fields(encode_fields({"count": UInt32(5)})) == {"count": 5}
    for data in (b"", b"\x40", encode_fields({})[:-1], encode_fields({}) + b"\x40"):
        with pytest.raises(DecodeError):
            decode_fields(data)
