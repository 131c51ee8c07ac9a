"""Queries of a page, and waits for rows of a lake, by DuckDB."""

from __future__ import annotations

import contextlib
from datetime import datetime
from typing import Any

import duckdb
from pipeline.quick import PATIENCE
from support.waiting import wait_until


def wait_for_rows(line: str) -> tuple[int, str]:
    """Wait until a lake has rows: ``wait-for-rows from 'FILES' where CONDITION``, in DuckDB's SQL."""
    wait_until(lambda: _has_rows(line.removeprefix("wait-for-rows ")), line, PATIENCE)
    return 0, ""


def _has_rows(source: str) -> bool:
    # There are no such files yet, or one is being written.
    with contextlib.suppress(duckdb.IOException, duckdb.InvalidInputException):
        return bool(_rows(f"select 1 {source}"))
    return False


def query(sql: str) -> str:
    """The rows that DuckDB answers, in columns; times in seconds."""
    rows = [[_cell(value) for value in row] for row in _rows(sql)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(" | ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def _rows(sql: str) -> list[Any]:
    with duckdb.connect() as connection:
        return connection.execute(sql).fetchall()


def _cell(value: object) -> str:
    return f"{value:%Y-%m-%d %H:%M:%S}" if isinstance(value, datetime) else str(value)
