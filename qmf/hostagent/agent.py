"""`HostAgent`: all collectors, an agent, and the clock that drives them."""

from __future__ import annotations

import asyncio
import logging
import os
import platform
from typing import Any

from qmf._version import __version__
from qmf.agent import Agent, CallAudit, Event, ManagedObject
from qmf.bus import AmqpBus, Bus
from qmf.errors import CallerError
from qmf.hostagent.beat import Beat
from qmf.hostagent.collector import Collector, Context
from qmf.hostagent.cpu import CpuCollector
from qmf.hostagent.disks import DiskCollector
from qmf.hostagent.filesystems import FilesystemCollector
from qmf.hostagent.itself import Itself
from qmf.hostagent.memory import MemoryCollector, SwapCollector
from qmf.hostagent.network import NetworkCollector
from qmf.hostagent.processes import ProcessCollector
from qmf.hostagent.sampler import Sampler
from qmf.hostagent.settings import Settings
from qmf.hostagent.source import Machine
from qmf.hostagent.system import SystemCollector
from qmf.hostagent.values import clip, nanoseconds
from qmf.models.host import agent as model

logger = logging.getLogger("qmf.hostagent")

VENDOR = "qmf"
PRODUCT = "host"

#: Everything that consoles can ask about, whether or not this machine has any of it.
CLASSES: tuple[type[ManagedObject] | type[Event], ...] = (
    model.System,
    model.Cpu,
    model.Memory,
    model.Swap,
    model.Disk,
    model.Filesystem,
    model.NetworkInterface,
    model.Process,
    model.Agent,
    model.AgentStarted,
    model.SamplingLate,
    model.FilesystemAboveThreshold,
    model.FilesystemBelowThreshold,
    model.InterfaceUp,
    model.InterfaceDown,
    model.ProcessStarted,
    model.ProcessGone,
)


class HostAgent:
    """Describes this machine on a management bus, from `start` to `close`. All methods belong to one event loop.

    Args:
        url_or_bus: the broker's URL, or a bus.
        settings: the operator's choices.
        domain: QMF domain to be found in.
        machine: where readings come from; another one is for tests.

    Raises:
        CallerError: the URL or the instance name is invalid.
    """

    def __init__(
        self,
        url_or_bus: str | Bus,
        settings: Settings | None = None,
        *,
        domain: str = "default",
        machine: Machine | None = None,
    ) -> None:
        self._settings = settings or Settings()
        self._interval = self._settings.interval
        self._instance = _machine_name() if self._settings.instance is None else self._settings.instance
        self._bus = url_or_bus if isinstance(url_or_bus, Bus) else AmqpBus(url_or_bus)
        self._agent = Agent(
            self._bus,
            vendor=VENDOR,
            product=PRODUCT,
            instance=self._instance,
            domain=domain,
            interval=self._interval,
            audit=CallAudit(arguments=True) if self._settings.audit else None,
        )
        self._agent.register(*CLASSES)
        self._context = Context(self._agent, machine or Machine(), self._settings)
        self._processes = ProcessCollector(self._context)
        self._sampler = Sampler(self._context, self._collectors())
        self._itself: Itself | None = None
        self._one_at_a_time = asyncio.Lock()
        self._interval_changed = asyncio.Event()
        self._clock: asyncio.Task[None] | None = None
        self._started = False

    @property
    def agent(self) -> Agent:
        """The agent that holds the objects."""
        return self._agent

    @property
    def name(self) -> str:
        """Name of the agent, ``vendor:product:instance``."""
        return f"{VENDOR}:{PRODUCT}:{self._instance}"

    @property
    def url(self) -> str:
        """Where the bus is, without password."""
        return self._bus.url

    async def start(self) -> None:
        """Take the first sample, connect, and go on sampling.

        Raises:
            ConnectError: no connection; names the URL and the reason. The agent is closed.
            CallerError: it was started before.
        """
        if self._started:
            raise CallerError(f"host agent {self.name} was started before; make a new one")
        self._started = True
        try:
            # Sampled before connecting: whoever finds the agent finds its objects, too.
            await self.sample()
            await self._agent.start()
        except BaseException:
            await self.close()
            raise
        self._agent.raise_event(
            model.AgentStarted(
                agent=clip(self._instance), nodeName=_machine_name(), version=__version__, interval=self._interval
            )
        )
        self._clock = asyncio.create_task(self._run(), name="host agent's clock")

    async def close(self) -> None:
        """Stop sampling and leave the bus. A second call does nothing."""
        clock, self._clock = self._clock, None
        if clock is not None:
            clock.cancel()
            await asyncio.gather(clock, return_exceptions=True)
        self._sampler.close()
        await self._agent.close()

    async def sample(self) -> model.SystemSampleResult:
        """Take a sample now; one that is under way is waited for first.

        Returns:
            the time that it took, and the number of objects.
        """
        return await self._sample()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        beat = Beat(self._interval, loop.time())
        while True:
            try:
                async with asyncio.timeout_at(beat.due):
                    await self._interval_changed.wait()
            except TimeoutError:
                await self._timed_sample(beat)
            else:
                self._interval_changed.clear()
                beat.change(self._interval, loop.time())

    async def _timed_sample(self, beat: Beat) -> None:
        try:
            await self._sample(beat)
        except Exception:
            # What a machine may do to us is handled where it is read. This is a bug, and no reason to stop for good.
            logger.exception("Sample failed; the next one follows in %g s", beat.interval)

    async def _sample(self, beat: Beat | None = None) -> model.SystemSampleResult:
        loop = asyncio.get_running_loop()
        async with self._one_at_a_time:
            begin = loop.time()
            if beat is not None and self._itself is not None:
                self._begin(self._itself, beat.began(begin))
            await self._sampler.sample()
            itself = self._itself = self._itself or self._add_itself()
            itself.processRef = self._processes.find(os.getpid())
            objects = len(self._agent.objects)
            took = loop.time() - begin
            itself.took(took, failures=self._context.failures.count, objects=objects)
            return model.SystemSampleResult(duration=nanoseconds(took), objects=objects)

    def _begin(self, itself: Itself, delay: float) -> None:
        if itself.began(delay):
            self._agent.raise_event(
                model.SamplingLate(agent=clip(self._instance), delay=nanoseconds(delay), interval=self._interval)
            )

    def _add_itself(self) -> Itself:
        itself = Itself(self._instance, self._context.system, self._settings, self._change_interval)
        self._agent.add(itself)
        return itself

    def _change_interval(self, seconds: float) -> None:
        self._interval = seconds
        self._interval_changed.set()

    def _collectors(self) -> list[Collector[Any]]:
        """In the order in which objects refer to each other."""
        context = self._context
        disks = DiskCollector(context)
        return [
            SystemCollector(context, self.sample),
            CpuCollector(context),
            MemoryCollector(context),
            SwapCollector(context),
            disks,
            FilesystemCollector(context, disks.objects),
            NetworkCollector(context),
            self._processes,
        ]


def _machine_name() -> str:
    return clip(platform.node() or "localhost")
