"""The soak through broker restarts, in small; `bench/soak_restarts.py` by itself is the big one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.processes import run

pytestmark = [pytest.mark.slow, pytest.mark.soak]

PROGRAM = str(Path(__file__).resolve().parents[2] / "bench" / "soak_restarts.py")


@pytest.mark.parametrize("burst", ["1", "3"])
def test_consoles_are_right_after_restarts_of_the_broker(burst: str) -> None:
    done = run([sys.executable, PROGRAM, "--agents", "4", "--objects", "400", "--restarts", "3", "--burst", burst])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "right: 4 agents, 400 objects, 3 restarts" in done.stdout
    assert "WRONG" not in done.stdout
    assert "Traceback" not in done.stderr
