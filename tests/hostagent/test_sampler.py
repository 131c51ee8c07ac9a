"""Running the collectors."""

from __future__ import annotations

import asyncio
import logging
import threading

import psutil
import pytest
from hostagent.fakes import World

from qmf.errors import CallerError
from qmf.hostagent.collectors.base import Collector, CollectorContext
from qmf.hostagent.sampler import Sampler


class RecordingCollector(Collector[int]):
    """Notes which half ran on which thread."""

    what = "the numbers"

    def __init__(
        self, context: CollectorContext, error: Exception | None = None, invalid: Exception | None = None
    ) -> None:
        super().__init__(context)
        self.error = error
        self.invalid = invalid
        self.read_on: list[str] = []
        self.applied: list[int] = []

    def read(self) -> int:
        self.read_on.append(threading.current_thread().name)
        if self.error is not None:
            raise self.error
        return 42

    def apply(self, reading: int) -> None:
        assert threading.current_thread() is threading.main_thread()
        if self.invalid is not None:
            raise self.invalid
        self.applied.append(reading)


async def test_reading_is_done_in_a_thread_and_applying_on_the_loop(world: World) -> None:
    context = world.context()
    collector = RecordingCollector(context)
    sampler = Sampler(context, [collector])
    await sampler.sample()
    sampler.close()
    assert collector.applied == [42]
    assert [name.startswith("qmf-host-reader") for name in collector.read_on] == [True]


@pytest.mark.parametrize(
    "error", [OSError("no"), psutil.AccessDenied(7), NotImplementedError("no"), RuntimeError("no"), ValueError("no")]
)
async def test_a_collector_that_fails_leaves_the_others(
    world: World, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    context = world.context()
    broken, sound = RecordingCollector(context, error), RecordingCollector(context)
    broken.what = "the broken ones"
    sampler = Sampler(context, [broken, sound])
    with caplog.at_level(logging.WARNING):
        await sampler.sample()
        await sampler.sample()
    sampler.close()
    assert sound.applied == [42, 42]
    assert broken.applied == []
    assert len(caplog.records) == 1
    assert context.failures.count == 2


async def test_what_does_not_fit_the_model_leaves_the_others(world: World) -> None:
    context = world.context()
    broken, sound = RecordingCollector(context, invalid=CallerError("too big")), RecordingCollector(context)
    sampler = Sampler(context, [broken, sound])
    await sampler.sample()
    sampler.close()
    assert sound.applied == [42]
    assert context.failures.count == 1


async def test_the_loop_goes_on_while_the_machine_is_read(world: World) -> None:
    context = world.context()
    answered = threading.Event()

    class Slow(RecordingCollector):
        def read(self) -> int:
            # Ends only when the loop has run something meanwhile.
            return 1 if answered.wait(10) else 0

    collector = Slow(context)
    sampler = Sampler(context, [collector])
    sampling = asyncio.create_task(sampler.sample())
    await asyncio.sleep(0)
    answered.set()
    await sampling
    sampler.close()
    assert collector.applied == [1]
