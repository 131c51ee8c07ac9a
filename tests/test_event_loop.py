"""Which event loop commands and background threads run on."""

from __future__ import annotations

import asyncio
import sys

import pytest
import uvloop

from qmf import _event_loop


async def running() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


def test_the_loop_is_uvloops() -> None:
    assert isinstance(_event_loop.run(running()), uvloop.Loop)


def test_without_uvloop_it_is_asyncios(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert not isinstance(_event_loop.run(running()), uvloop.Loop)
