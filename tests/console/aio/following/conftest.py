"""Fixtures of the tests of following."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qmf.console.aio.following.agent_follower.SHORTEST_PAUSE", 0.001)
    monkeypatch.setattr("qmf.console.aio.following.agent_follower.FIRST_RETRY", 0.005)
