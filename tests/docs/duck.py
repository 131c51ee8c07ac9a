"""Queries of a page, and waits for rows of a lake, by DuckDB.

DuckDB's extension for Delta tables comes from the network, so ``delta_scan`` is done here by the library `deltalake`.
"""

from __future__ import annotations

import contextlib
import re
from datetime import datetime
from typing import Any

import duckdb
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from pipeline.quick import WAIT_LIMIT
from support.waiting import wait_until

_SCAN = re.compile(r"delta_scan\('([^']+)'\)")


def wait_for_rows(line: str) -> tuple[int, str]:
    """Wait until a lake has rows: ``wait-for-rows from delta_scan('TABLE') where CONDITION``, in DuckDB's SQL."""
    wait_until(lambda: _has_rows(line.removeprefix("wait-for-rows ")), line, WAIT_LIMIT)
    return 0, ""


def _has_rows(source: str) -> bool:
    # There is no such table yet.
    with contextlib.suppress(TableNotFoundError):
        return bool(_rows(f"select 1 {source}"))
    return False


def query(sql: str) -> str:
    """The rows that DuckDB answers, in columns; times in seconds."""
    rows = [[_cell(value) for value in row] for row in _rows(sql)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(" | ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def _rows(sql: str) -> list[Any]:
    with duckdb.connect() as connection:

        def table(match: re.Match[str]) -> str:
            name = f"table_{match.start()}"
            connection.register(name, DeltaTable(match[1]).to_pyarrow_dataset())
            return name

        return connection.execute(_SCAN.sub(table, sql)).fetchall()


def _cell(value: object) -> str:
    return f"{value:%Y-%m-%d %H:%M:%S}" if isinstance(value, datetime) else str(value)
