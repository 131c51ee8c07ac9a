"""Files of audit logs: lines that are appended, by whoever owns them."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from qmf._audit_log import AuditFile, audit_line


def record(text: str) -> logging.LogRecord:
    return logging.LogRecord("audit", logging.INFO, "", 0, "%s", (text,), None)


def test_a_line_is_json() -> None:
    line = audit_line(
        "create\nqueue", user="bob", address="::1", by="PLAIN", result="done", details={"object": "q", "password": "x"}
    )
    assert "\n" not in line
    found = json.loads(line)
    assert found.pop("time").endswith("Z")
    assert found == {
        "action": "create\nqueue", "user": "bob", "address": "::1", "by": "PLAIN", "result": "done",
        "object": "q", "password": "***",
    }  # fmt: skip


def test_a_file_is_continued_and_rotated(tmp_path: Path) -> None:
    path = tmp_path / "audit"
    path.write_text("before\n")
    handler = AuditFile(path)
    handler.emit(record("one"))
    path.rename(tmp_path / "audit.1")
    handler.emit(record("two"))  # nobody has said that the file was moved
    handler.reopen()
    handler.emit(record("three"))
    handler.close()
    assert (tmp_path / "audit.1").read_text() == "before\none\ntwo\n"
    assert path.read_text() == "three\n"
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_file_that_cannot_be_opened_again(tmp_path: Path) -> None:
    handler = AuditFile(tmp_path / "audit")
    (tmp_path / "audit").rename(tmp_path / "old")
    (tmp_path / "audit").mkdir()
    with pytest.raises(IsADirectoryError):
        handler.reopen()
    handler.emit(record("goes on"))
    handler.close()
    assert (tmp_path / "old").read_text() == "goes on\n"
