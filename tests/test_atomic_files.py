"""Files that are replaced in one step."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from qmf._atomic_files import PRIVATE, TEMPORARY, replace_file, replaced_file


@pytest.mark.parametrize("sync", [True, False])
def test_a_file_is_replaced(tmp_path: Path, sync: bool) -> None:
    path = tmp_path / "a"
    replace_file(path, b"1", sync=sync)
    replace_file(path, b"2", sync=sync)
    assert path.read_bytes() == b"2"
    assert list(tmp_path.iterdir()) == [path]


def test_the_old_content_is_there_until_the_end(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"1")
    with replaced_file(path) as file:
        file.write(b"2")
        file.close()
        assert path.read_bytes() == b"1"
        assert sum(item.name.startswith(TEMPORARY) for item in tmp_path.iterdir()) == 1
    assert path.read_bytes() == b"2"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_leaves_the_old_content(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"1")

    def write() -> None:
        with replaced_file(path) as file:
            file.write(b"2")
            raise error

    with pytest.raises(error):
        write()
    assert path.read_bytes() == b"1"
    assert list(tmp_path.iterdir()) == [path]


def test_a_name_that_cannot_be_taken(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        replace_file(tmp_path / "folder", b"1")
    with pytest.raises(FileNotFoundError):
        replace_file(tmp_path / "none" / "a", b"1")
    assert [item.name for item in tmp_path.iterdir()] == ["folder"]


def test_the_longest_name(tmp_path: Path) -> None:
    path = tmp_path / ("ä" * 127)
    replace_file(path, b"1")
    assert path.read_bytes() == b"1"


def test_permissions(tmp_path: Path) -> None:
    mask = os.umask(0o027)
    try:
        replace_file(tmp_path / "usual", b"")
        replace_file(tmp_path / "private", b"", mode=PRIVATE)
    finally:
        os.umask(mask)
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("usual", "private")] == [0o640, 0o600]
