"""Which event loop commands and background threads run on."""

from __future__ import annotations

import asyncio
import os
import signal
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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("library", ["uvloop", "asyncio"])
def test_end_signals_are_received_and_have_their_handlers_afterwards(
    monkeypatch: pytest.MonkeyPatch, library: str, number: signal.Signals
) -> None:
    if library == "asyncio":
        monkeypatch.setitem(sys.modules, "uvloop", None)

    async def main() -> None:
        stop = asyncio.Event()
        with _event_loop.on_end_signals(stop.set):
            os.kill(os.getpid(), number)
            await asyncio.wait_for(stop.wait(), 30)

    before = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    _event_loop.run(main())
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == before
