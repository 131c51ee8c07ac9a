"""Fixtures of the tests of commands."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from shell.fakes import FakeBackend, filesystem, process
from shell.recorded import past, put, shop

__all__ = ["past", "put", "shop"]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Returns a function that lets seconds pass for the clock of views."""
    now = [1000.0]

    def step(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return step


@pytest.fixture
def family(backend: FakeBackend) -> None:
    """A root with one child, which has 25 children; and a process."""
    root = filesystem("/")
    home = filesystem("/home", parent=root.identity.key, label="houses")
    backend.records = [
        root,
        home,
        *(filesystem(f"/home/{n}", parent=home.identity.key) for n in range(1, 26)),
        process(7),
    ]


@pytest.fixture
def nine_filesystems(backend: FakeBackend) -> None:
    """Filesystems /1 to /9 with thresholds 10 to 90."""
    backend.records = [filesystem(f"/{n}", threshold=n * 10, label="x" * n) for n in range(1, 10)]
