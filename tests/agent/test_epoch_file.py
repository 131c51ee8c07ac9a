"""The file that counts starts: races of processes, and what may happen to a file."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from qmf.agent.epoch_file import EPOCH_MAX, count_start
from qmf.errors import CallerError

KIND = ("example.org", "stock")
FILE = "example.org,stock.json"

_CHILD = """
import sys
from pathlib import Path
from qmf.agent.epoch_file import count_start
sys.stdin.readline()
for _ in range({rounds}):
    print(*count_start(Path({folder!r}), ("example.org", "stock"), None, 1_000_000))
"""


@pytest.mark.slow
def test_processes_that_race_get_epochs_of_their_own(tmp_path: Path) -> None:
    code = _CHILD.format(rounds=20, folder=str(tmp_path))
    children = [
        subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path.cwd()
        )
        for _ in range(3)
    ]
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    lines = [line.split() for child in children for line in child.communicate(timeout=60)[0].splitlines()]
    assert [child.returncode for child in children] == [0, 0, 0]
    assert sorted(int(epoch) for _, epoch in lines) == list(range(1, 61))
    assert len({instance for instance, _ in lines}) == 1
    assert {path.name for path in tmp_path.iterdir()} == {FILE, "example.org,stock.lock"}


def test_threads_that_race_do_as_well(tmp_path: Path) -> None:
    epochs: list[int] = []
    threads = [
        threading.Thread(target=lambda: epochs.extend(count_start(tmp_path, KIND, "i", 0)[1] for _ in range(10)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(epochs) == list(range(1, 41))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00" * 40,
        b"\xff\xfe{}",
        b'{"instance": "x"}',
        b'{"instance": "", "epoch": 3}',
        b'{"instance": "x", "epoch": true}',
        b'{"instance": "x", "epoch": 2.5}',
        b'{"instance": "x", "epoch": 4294967296}',
        b"[" * 100_000,
        b"null",
    ],
)
def test_damaged_files(tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / FILE).write_bytes(content)
    with caplog.at_level(logging.WARNING, "qmf.agent"):
        instance, epoch = count_start(tmp_path, KIND, None, 5000)
    assert epoch == 5001
    assert "is damaged; counting starts from the time" in caplog.text
    assert count_start(tmp_path, KIND, None, 0) == (instance, 5002)


def test_the_file_is_replaced_in_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count_start(tmp_path, KIND, "i", 0)
    path = tmp_path / "example.org,stock,i.json"
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CallerError, match="No space left on device"):
        count_start(tmp_path, KIND, "i", 0)
    assert path.read_bytes() == before
    assert json.loads(before) == {"instance": "i", "epoch": 1}
    assert len(list(tmp_path.iterdir())) == 2


def test_a_folder_in_place_of_the_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir()
    with pytest.raises(CallerError, match=r"example\.org,stock\.json: Is a directory"):
        count_start(tmp_path, KIND, None, 0)


def test_the_largest_epoch_is_followed_by_the_first(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(json.dumps({"instance": "x", "epoch": EPOCH_MAX}))
    assert count_start(tmp_path, KIND, None, 0) == ("x", 1)
