"""The program that makes the README's picture runs, and the picture that is checked in is what it makes."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from shell.programs import PATIENCE, environment

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_picture_is_fresh(tmp_path: Path) -> None:
    program = ROOT / "docs" / "demo" / "shell_picture.py"
    command = [sys.executable, str(program), "--out", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE * 2, env=environment(tmp_path))
    text = (tmp_path / "shell.txt").read_text(encoding="utf-8")
    assert "purge  Discard messages" in text
    there = (ROOT / "docs" / "demo" / "shell.txt").read_text(encoding="utf-8")
    # The first line tells the version.
    assert text.splitlines()[1:] == there.splitlines()[1:]
    picture = ET.parse(tmp_path / "shell.svg").getroot()
    assert picture.tag == "{http://www.w3.org/2000/svg}svg"
    assert "purge" in "".join(picture.itertext())
