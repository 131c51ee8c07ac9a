"""Reading the pages of a database without SQLite."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from qmf.broker.store.page_file import PageFile
from qmf.broker.store.page_rows import PageRows, Value

#: All kinds of values; texts and bytes that are longer than a page as well.
VALUES = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(max_size=20),
    st.binary(max_size=20),
    st.integers(300, 20_000).map(lambda length: bytes(range(256)) * (length // 256)),
)
ROWS = st.dictionaries(st.integers(-(2**63), 2**63 - 1), st.tuples(VALUES, VALUES), max_size=40)
SIZES = st.sampled_from([512, 1024, 4096, 65_536])


def read(path: Path) -> tuple[dict[int, tuple[Value, ...]], list[str]]:
    """The rows of a table of three columns, by id, and the faults."""
    with PageFile(path) as file:
        rows = PageRows(file)
        found = {
            row.id: tuple(row.values[1:])
            for row in rows
            if row.id is not None and len(row.values) == 3 and row.values[0] is None
        }
        return found, rows.faults


@given(ROWS, SIZES, st.data())
def test_all_rows_are_read_as_by_sqlite(rows: dict[int, tuple[Value, Value]], size: int, data: st.DataObject) -> None:
    removed = data.draw(st.lists(st.sampled_from(sorted(rows)), unique=True)) if rows else []
    with TemporaryDirectory() as folder:
        path = Path(folder, "file")
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = OFF")
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute(f"PRAGMA page_size = {size}")
            connection.execute("CREATE TABLE pair (id INTEGER PRIMARY KEY, one, two)")
            connection.executemany("INSERT INTO pair VALUES (?, ?, ?)", [(id, *pair) for id, pair in rows.items()])
            connection.executemany("DELETE FROM pair WHERE id = ?", [(id,) for id in removed])
            expected = {id: pair for id, *pair in connection.execute("SELECT id, one, two FROM pair")}
        found, faults = read(path)
    assert {id: list(pair) for id, pair in found.items()} == expected
    assert faults == []


def test_what_is_in_the_log_only_is_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE pair (id INTEGER PRIMARY KEY, one, two)")
        connection.executemany("INSERT INTO pair VALUES (?, ?, ?)", [(id, "x" * 500, id) for id in range(100)])
        connection.execute("DELETE FROM pair WHERE id >= 50")
        log = tmp_path / "file-wal"
        assert len(log.read_bytes()) > 4096
        found, faults = read(path)
        assert (sorted(found), faults) == (list(range(50)), [])
        # The last transaction was not written to its end: it did not happen.
        connection.execute("BEGIN")
        connection.execute("DELETE FROM pair")
        connection.execute("COMMIT")
        data = bytearray(log.read_bytes())
        data[-1] ^= 1
        copy = tmp_path / "copy"
        copy.write_bytes(path.read_bytes())
        (tmp_path / "copy-wal").write_bytes(data)
        assert sorted(read(copy)[0]) == list(range(50))


def numbered(count: int = 200, length: int = 600) -> bytes:
    """A database with rows of some pages."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE pair (id INTEGER PRIMARY KEY, one, two)")
        connection.executemany("INSERT INTO pair VALUES (?, ?, ?)", [(id, b"x" * length, id) for id in range(count)])
        return connection.serialize()


WHOLE = numbered()


@given(st.integers(0, 30), st.integers(1, 5), st.binary(min_size=1, max_size=64))
@example(first=5, pages=1, pattern=b"\x0d" + bytes(63))  # looks like a page without rows
@example(first=5, pages=1, pattern=b"\x0a" + bytes(63))
@example(first=5, pages=1, pattern=b"\x05" + bytes(63))  # and like one that names other pages
@example(first=5, pages=1, pattern=b"\x02" + bytes(63))
def test_a_damaged_page_takes_no_other_with_it(first: int, pages: int, pattern: bytes) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "file")
        damage = (pattern * (4096 * pages // len(pattern) + 1))[: 4096 * pages]
        path.write_bytes(WHOLE[: 4096 * first] + damage + WHOLE[4096 * (first + pages) :])
        found, faults = read(path)
    assert all(found[id] == (b"x" * 600, id) for id in found if id in range(200))
    assert len(found) >= 200 - 7 * pages
    assert faults or len(found) == 200


@pytest.mark.parametrize("length", [0, 50, 4096, 6_000, 100_000])
def test_a_file_that_was_cut_off(tmp_path: Path, length: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(WHOLE[:length])
    found, faults = read(path)
    assert len(found) >= 6 * (length // 4096 - 3)
    assert faults
    assert length < 4096 or "bytes at its end are missing" in " ".join(faults)


def test_a_chain_of_pages_that_never_ends(tmp_path: Path) -> None:
    path = tmp_path / "file"
    data = bytearray(numbered(count=1, length=20_000))
    for page in range(2, len(data) // 4096):
        data[4096 * page : 4096 * page + 4] = (3).to_bytes(4)
    path.write_bytes(data)
    found, faults = read(path)
    assert found == {}
    assert "page 2: 1 of 1 rows are lost; the first one: page 3 with the rest of it cannot be read" in faults
