"""docs/demo: the picture of the shell is what the program draws today."""

from __future__ import annotations

import re
import sys
from html import unescape
from pathlib import Path

import pytest
from docs.page import ROOT
from support.processes import run
from support.waiting import wait_until

pytestmark = pytest.mark.slow

DEMO = ROOT / "docs" / "demo"


def test_the_picture(tmp_path: Path) -> None:
    """Otherwise: ``python docs/demo/shell_picture.py``."""
    kept = (DEMO / "shell.txt").read_text(encoding="utf-8")

    def drawn() -> bool:
        done = run([sys.executable, str(DEMO / "shell_picture.py"), "--out", str(tmp_path)])
        assert done.returncode == 0, done.stderr
        return (tmp_path / "shell.txt").read_text(encoding="utf-8") == kept

    wait_until(drawn, "the kept picture")


def test_the_picture_shows_the_text() -> None:
    # Words are placed one by one, and long ones in parts.
    picture = unescape(re.sub("<[^>]*>|\n", "", (DEMO / "shell.svg").read_text(encoding="utf-8")))
    words = (DEMO / "shell.txt").read_text(encoding="utf-8").split()
    assert [word for word in words if word not in picture] == []
