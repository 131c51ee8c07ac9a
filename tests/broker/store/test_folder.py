"""The files of the data folder: who may read them, and what is wrong when one is empty or missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from broker.store.test_checking import make
from broker.visible_broker import VisibleBroker

from qmf.broker.store.checking import check_store
from qmf.broker.store.database import open_database
from qmf.broker.store.errors import StoreDamaged
from qmf.broker.store.folder import DATABASE, DataFolder


def test_an_empty_file_is_no_store(tmp_path: Path) -> None:
    file = make(tmp_path)
    file.write_bytes(b"")
    with pytest.raises(StoreDamaged, match=r"store\.sqlite: is empty \(0 bytes\), so what it held is lost: put a copy"):
        open_database(file)
    assert file.stat().st_size == 0
    file.unlink()
    log = tmp_path / f"{DATABASE}-wal"
    log.write_bytes(b"changes")
    with pytest.raises(StoreDamaged, match=r"is missing, but its log store\.sqlite-wal is there: put a copy"):
        open_database(file)
    assert log.read_bytes() == b"changes"
    log.unlink()
    open_database(file).close()
    assert check_store(tmp_path).faults == ()


async def test_others_cannot_read_the_files(tmp_path: Path) -> None:
    def modes(folder: Path) -> set[str]:
        return {f"{path.name} {path.stat().st_mode & 0o777:o}" for path in (folder, *folder.iterdir())}

    folder = tmp_path / "data"
    expected = {"data 700", "lock 600", "store.sqlite 600", "store.sqlite-wal 600", "store.sqlite-shm 600"}
    async with VisibleBroker(port=0, data_dir=folder, management=3600):
        assert expected <= modes(folder)
        assert "systemId 600" in modes(folder)
    copy = folder / "store.sqlite.backup"
    copy.write_bytes((folder / DATABASE).read_bytes())
    (folder / "other").touch()
    for path in (folder, *folder.iterdir()):
        path.chmod(0o755)
    async with VisibleBroker(port=0, data_dir=folder):
        assert expected | {"store.sqlite.backup 600", "systemId 600", "other 755"} <= modes(folder)


def test_a_store_that_is_made_is_there_whole(tmp_path: Path) -> None:
    """What an earlier start had left is replaced."""
    leftover = tmp_path / f"{DATABASE}.new"
    leftover.write_bytes(b"half of it")
    with DataFolder(tmp_path) as folder:
        open_database(folder.database).close()
    assert not leftover.exists()
    assert check_store(tmp_path).definitions == 0
