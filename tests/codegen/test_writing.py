"""All files of a generation are written, or none."""

from __future__ import annotations

from pathlib import Path

import pytest
from qmf_codegen.comparing import ChangedFile
from qmf_codegen.writing import write


def test_files_are_written_in_order_and_removed(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("x")
    lines: list[str] = []
    changes = [
        ChangedFile(tmp_path / "a", None, "1"),
        ChangedFile(tmp_path / "old", "x", None),
        ChangedFile(tmp_path / "new" / "b", None, "2"),
    ]
    write(changes, lines.append)
    assert lines == [f"wrote {tmp_path / 'a'}", f"wrote {tmp_path / 'new' / 'b'}", f"removed {tmp_path / 'old'}"]
    assert (tmp_path / "new" / "b").read_text() == "2"


@pytest.mark.parametrize("first", [True, False])
def test_a_file_that_cannot_be_written_leaves_all_as_they_were(tmp_path: Path, first: bool) -> None:
    (tmp_path / "a").write_text("0")
    (tmp_path / "file").write_text("0")
    lines: list[str] = []
    changes = [ChangedFile(tmp_path / "a", "0", "1"), ChangedFile(tmp_path / "file" / "b", None, "2")]
    with pytest.raises(OSError, match="file"):
        write(changes[:: 1 if first else -1], lines.append)
    assert (tmp_path / "a").read_text() == "0"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "file"]
    assert lines == []
