"""The managed object of the host agent itself: sampling statistics, and the interval that consoles may set."""

from __future__ import annotations

import time
from collections.abc import Callable

from qmf._version import __version__
from qmf.agent import Ref
from qmf.hostagent.conversions import clip, nanoseconds
from qmf.hostagent.settings import Settings
from qmf.models.host import agent as model

#: A sample counts as late when it begins later than this part of an interval after it was due.
LATE = 0.5


class HostAgentObject(model.Agent):
    """The managed object of the host agent itself.

    Args:
        name: the agent's instance name.
        system: the object of the machine.
        settings: the operator's settings.
        on_interval: called with the new interval, in seconds, when a console has set one.
    """

    def __init__(self, name: str, system: Ref, settings: Settings, on_interval: Callable[[float], None]) -> None:
        super().__init__(name=clip(name), systemRef=system)
        self._on_interval = on_interval
        self._began = time.monotonic()
        self._late = False
        self.version = __version__
        self.interval = settings.interval
        self.selection = str(settings.shown)
        self.watching = [pattern.pattern for pattern in settings.watch]

    def echo(self, sequence: int, body: str) -> model.AgentEchoResult:
        return model.AgentEchoResult(sequence=sequence, body=body)

    def _qmf_set_property(self, name: str, value: object) -> None:
        super()._qmf_set_property(name, value)
        if name == "interval":
            self._on_interval(self.interval)

    def sample_began(self, delay: float) -> bool:
        """Count a sample that was due and begins now.

        Args:
            delay: seconds since it was due.

        Returns:
            True when this sample is late and the previous one was not.
        """
        self.samplingDelay.sample(nanoseconds(delay))
        was_late, self._late = self._late, delay > self.interval * LATE
        if self._late:
            self.lateSamples.inc()
        return self._late and not was_late

    def sample_done(self, seconds: float, *, failures: int, objects: int) -> None:
        """Count a sample that is complete.

        Args:
            seconds: its duration.
            failures: readings that failed since the start.
            objects: objects that the agent has now.
        """
        self.samples.inc()
        self.samplingTime.sample(nanoseconds(seconds))
        self.failures.set(failures)
        self.objects.set(objects)
        self.uptime = nanoseconds(time.monotonic() - self._began)
