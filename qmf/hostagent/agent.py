"""`HostAgent`: all collectors, an agent, and the task that takes a sample at each interval."""

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
from qmf.hostagent.agent_object import HostAgentObject
from qmf.hostagent.collectors.base import Collector, CollectorContext
from qmf.hostagent.collectors.cpu import CpuCollector
from qmf.hostagent.collectors.disks import DiskCollector
from qmf.hostagent.collectors.filesystems import FilesystemCollector
from qmf.hostagent.collectors.memory import MemoryCollector, SwapCollector
from qmf.hostagent.collectors.network import NetworkCollector
from qmf.hostagent.collectors.processes import ProcessCollector
from qmf.hostagent.collectors.system import SystemCollector
from qmf.hostagent.conversions import clip, nanoseconds
from qmf.hostagent.machine import Machine
from qmf.hostagent.sampler import Sampler
from qmf.hostagent.schedule import SamplingSchedule
from qmf.hostagent.settings import Settings
from qmf.models.host import agent as model

logger = logging.getLogger("qmf.hostagent")

VENDOR = "qmf"
PRODUCT = "host"

#: All classes of the schema, registered even where this machine has no object of them.
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
        settings: the operator's settings.
        domain: QMF domain.
        machine: the source of readings; tests pass a fake.
        wait: if the broker cannot be reached at the start, go on trying in the background.

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
        wait: bool = True,
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
            wait=wait,
        )
        self._agent.register(*CLASSES)
        self._context = CollectorContext(self._agent, machine or Machine(), self._settings)
        self._processes = ProcessCollector(self._context)
        self._sampler = Sampler(self._context, self._collectors())
        self._agent_object: HostAgentObject | None = None
        self._one_at_a_time = asyncio.Lock()
        self._interval_changed = asyncio.Event()
        self._sampling: asyncio.Task[None] | None = None
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
        """URL of the broker, without password."""
        return self._bus.url

    async def start(self) -> None:
        """Take the first sample, connect, and go on sampling. See `Agent.start` for a broker that isn't there yet.

        Raises:
            ConnectError: without `wait`, no connection; names the URL and the reason. The agent is closed.
            AuthenticationError: the broker refused the user or the password. The agent is closed.
            CallerError: it was started before.
        """
        if self._started:
            raise CallerError(f"host agent {self.name} was started before; make a new one")
        self._started = True
        try:
            # Sampled before connecting: a console that discovers the agent finds its objects, too.
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
        self._sampling = asyncio.create_task(self._run(), name="host agent's sampling")

    async def close(self) -> None:
        """Stop sampling and leave the bus. A second call does nothing."""
        sampling, self._sampling = self._sampling, None
        if sampling is not None:
            sampling.cancel()
            await asyncio.gather(sampling, return_exceptions=True)
        self._sampler.close()
        await self._agent.close()

    async def sample(self) -> model.SystemSampleResult:
        """Take a sample now, after the one that is under way, if any.

        Returns:
            how long it took, and the number of objects.
        """
        return await self._sample()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        schedule = SamplingSchedule(self._interval, loop.time())
        while True:
            try:
                async with asyncio.timeout_at(schedule.due):
                    await self._interval_changed.wait()
            except TimeoutError:
                await self._timed_sample(schedule)
            else:
                self._interval_changed.clear()
                schedule.set_interval(self._interval, loop.time())

    async def _timed_sample(self, schedule: SamplingSchedule) -> None:
        try:
            await self._sample(schedule)
        except Exception:
            # Errors of the machine are handled where it is read, so this is a bug; sampling goes on.
            logger.exception("Sample failed; the next one follows in %g s", schedule.interval)

    async def _sample(self, schedule: SamplingSchedule | None = None) -> model.SystemSampleResult:
        loop = asyncio.get_running_loop()
        async with self._one_at_a_time:
            begin = loop.time()
            if schedule is not None and self._agent_object is not None:
                self._record_delay(self._agent_object, schedule.begin(begin))
            await self._sampler.sample()
            agent_object = self._agent_object = self._agent_object or self._add_agent_object()
            agent_object.processRef = self._processes.find(os.getpid())
            objects = len(self._agent.objects)
            took = loop.time() - begin
            agent_object.sample_done(took, failures=self._context.failures.count, objects=objects)
            return model.SystemSampleResult(duration=nanoseconds(took), objects=objects)

    def _record_delay(self, agent_object: HostAgentObject, delay: float) -> None:
        if agent_object.sample_began(delay):
            self._agent.raise_event(
                model.SamplingLate(agent=clip(self._instance), delay=nanoseconds(delay), interval=self._interval)
            )

    def _add_agent_object(self) -> HostAgentObject:
        agent_object = HostAgentObject(self._instance, self._context.system, self._settings, self._change_interval)
        self._agent.add(agent_object)
        return agent_object

    def _change_interval(self, seconds: float) -> None:
        self._interval = seconds
        self._interval_changed.set()

    def _collectors(self) -> list[Collector[Any]]:
        """All collectors; those whose objects are referred to come first."""
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
