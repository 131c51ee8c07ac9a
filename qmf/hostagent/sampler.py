"""One sample of everything: all collectors read in a worker thread, then their objects are updated on the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psutil

from qmf.hostagent.collectors.base import Collector, CollectorContext

#: Exceptions of a reading: the system's and psutil's, and those that psutil raises when the kernel reports something in
#: an unknown format.
READ_ERRORS = (OSError, psutil.Error, RuntimeError, ValueError)


class Sampler:
    """Runs collectors, one sample at a time.

    Args:
        context: records failures.
        collectors: in the order in which their objects are updated; those whose objects are referred to come first.
    """

    def __init__(self, context: CollectorContext, collectors: Sequence[Collector[Any]]) -> None:
        self._context = context
        self._collectors = collectors
        # A separate thread: psutil may hang on a broken device, and must not block the loop's shared threads.
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="qmf-host-reader")

    async def sample(self) -> None:
        """Take a sample. A collector that fails is reported; the others continue.

        If cancelled while reading, nothing is updated; the reading continues in its thread and is discarded.
        """
        readings = await asyncio.get_running_loop().run_in_executor(self._executor, self._read)
        for collector, reading in readings:
            with self._context.reporting_invalid_values(collector.what):
                collector.apply(reading)
            # A collector may have hundreds of objects; queries are answered between two collectors.
            await asyncio.sleep(0)

    def close(self) -> None:
        """End the thread, without waiting for a reading that hangs. A second call does nothing."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _read(self) -> list[tuple[Collector[Any], Any]]:
        readings = []
        for collector in self._collectors:
            try:
                readings.append((collector, collector.read()))
            except READ_ERRORS as error:
                self._context.failures.on_failure(collector.what, error)
            else:
                self._context.failures.on_success(collector.what)
        return readings
