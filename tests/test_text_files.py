"""Text files that users write."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from qmf._text_files import file_version, read_text


class _OwnError(Exception):
    pass


def test_texts_are_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "menu.txt"
    path.write_text("crème brûlée\n", encoding="utf-8")

    assert read_text(path, _OwnError) == "crème brûlée\n"
    assert read_text(str(path), _OwnError) == "crème brûlée\n"


def test_what_cannot_be_read_names_the_file_and_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "menu.txt"
    with pytest.raises(_OwnError, match=r"menu\.txt: No such file"):
        read_text(path, _OwnError)
    path.write_bytes(b"cr\xe8me")
    with pytest.raises(_OwnError, match=r"menu\.txt: not UTF-8"):
        read_text(path, _OwnError)
    with pytest.raises(_OwnError, match="Is a directory"):
        read_text(tmp_path, _OwnError)


def test_another_version_is_another_content_time_or_file(tmp_path: Path) -> None:
    path = tmp_path / "menu.txt"
    assert file_version(path) is None
    path.write_text("soup")
    first = file_version(path)
    assert file_version(str(path)) == first
    os.utime(path, ns=(1, 1))
    touched = file_version(path)
    (tmp_path / "new").write_text("cake")
    os.utime(tmp_path / "new", ns=(1, 1))
    (tmp_path / "new").replace(path)

    assert None not in (first, touched)
    assert len({first, touched, file_version(path)}) == 3
