"""One sample of everything: all collectors read in a worker thread, then their objects are updated on the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psutil

from qmf.hostagent.collector import Collector, Context

#: What a reading may fail with: the system's and psutil's errors, and what psutil lets through when the kernel tells
#: something in a form that it does not know.
READ_ERRORS = (OSError, psutil.Error, RuntimeError, ValueError)


class Sampler:
    """Runs collectors, one sample at a time.

    Args:
        context: takes failures.
        collectors: in the order in which their objects are updated: what is referred to comes first.
    """

    def __init__(self, context: Context, collectors: Sequence[Collector[Any]]) -> None:
        self._context = context
        self._collectors = collectors
        # One thread of our own: psutil may hang on a broken device, and must not take the loop's shared threads along.
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="qmf-host-reader")

    async def sample(self) -> None:
        """Take a sample. A collector that fails is reported; the others go on.

        Cancelled while reading, nothing is updated; the reading goes on in its thread and is thrown away.
        """
        readings = await asyncio.get_running_loop().run_in_executor(self._executor, self._read)
        for collector, reading in readings:
            with self._context.one(collector.what):
                collector.apply(reading)
            # Each collector may have hundreds of objects; queries are answered in between.
            await asyncio.sleep(0)

    def close(self) -> None:
        """Let go of the thread. Does not wait for a reading that hangs. A second call does nothing."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _read(self) -> list[tuple[Collector[Any], Any]]:
        readings = []
        for collector in self._collectors:
            try:
                readings.append((collector, collector.read()))
            except READ_ERRORS as error:
                self._context.failures.failed(collector.what, error)
            else:
                self._context.failures.worked(collector.what)
        return readings
