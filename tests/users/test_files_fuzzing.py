"""Changed files of users are read, or refused with `UsersError`, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.fuzzing import FEW, MANY, try_all

from qmf.users.files import read_users
from qmf.users.users import Users
from qmf.users.verifiers import UsersError, scram_text

FILES = (
    b"# users\nann:secret\nbob:!secret\n\n",
    f"ann:{scram_text('a')}\nbob:b\n".encode(),
    b"ann:$scrypt$ln=14,r=8,p=1$c2FsdHNhbHRzYWx0$aGFzaGhhc2hoYXNoaGFzaGhhc2g\n",
)


def reader(path: Path) -> Callable[[bytes], None]:
    def read(data: bytes) -> None:
        path.write_bytes(data)
        try:
            Users(read_users(path))
        except UsersError as error:
            str(error)  # must not fail either

    return read


def test_changed_files(tmp_path: Path) -> None:
    assert try_all(reader(tmp_path / "users"), FILES, FEW // 3) == FEW // 3


@pytest.mark.slow
@pytest.mark.soak
def test_many_changed_files(tmp_path: Path) -> None:
    assert try_all(reader(tmp_path / "users"), FILES, MANY) == MANY
