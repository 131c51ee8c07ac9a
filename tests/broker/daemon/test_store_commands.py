"""`--data-dir`, `--check-store` and `--salvage-store`."""

from __future__ import annotations

from pathlib import Path

import pytest
from broker.store.test_checking import make

from qmf.broker.daemon.cli import main
from qmf.broker.store.database import open_database


def test_a_store_is_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make(tmp_path)
    assert main(["--check-store", "--data-dir", str(tmp_path)]) == 0
    assert "queue orders: 10 messages" in capsys.readouterr().out


def test_a_damaged_store_is_reported_and_saved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = make(tmp_path / "old")
    connection = open_database(file)
    connection.execute("UPDATE message SET data = ? WHERE id = 4", (b"x",))
    connection.close()
    assert main(["--data-dir", str(tmp_path / "old"), "--check-store"]) == 1
    assert "message 4 of queue 1 is damaged" in capsys.readouterr().out
    assert main(["--data-dir", str(tmp_path / "old"), "--salvage-store", str(tmp_path / "new")]) == 0
    assert "queue orders: 9 messages" in capsys.readouterr().out
    assert main(["--data-dir", str(tmp_path / "new"), "--check-store"]) == 0


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--check-store"], "--check-store and --salvage-store need --data-dir"),
        (["--check-store", "--data-dir", "/nowhere/at/all"], "has no store of a broker"),
        (["--port", "0", "--data-dir", "/proc/nothing"], "the data folder cannot be used"),
    ],
)
def test_mistakes_are_named_in_a_line(options: list[str], error: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(options) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert error in lines[0]
