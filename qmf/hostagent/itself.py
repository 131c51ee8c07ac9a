"""The object of the host agent itself: how it samples, and what consoles may change about that."""

from __future__ import annotations

import time
from collections.abc import Callable

from qmf._version import __version__
from qmf.agent import Ref
from qmf.hostagent.settings import Settings
from qmf.hostagent.values import clip, nanoseconds
from qmf.models.host import agent as model

#: Part of an interval by which a sample may begin after it was due before it counts as late.
LATE = 0.5


class Itself(model.Agent):
    """The agent's own object.

    Args:
        name: the agent's instance name.
        system: the object of the machine.
        settings: the operator's choices.
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

    def began(self, delay: float) -> bool:
        """Count a sample that was due and begins now.

        Args:
            delay: seconds since it was due.

        Returns:
            True when samples begin to be late: the one before was on time.
        """
        self.samplingDelay.sample(nanoseconds(delay))
        was_late, self._late = self._late, delay > self.interval * LATE
        if self._late:
            self.lateSamples.inc()
        return self._late and not was_late

    def took(self, seconds: float, *, failures: int, objects: int) -> None:
        """Count a sample that is done.

        Args:
            seconds: time that it took.
            failures: readings that failed since the start.
            objects: objects that the agent has now.
        """
        self.samples.inc()
        self.samplingTime.sample(nanoseconds(seconds))
        self.failures.set(failures)
        self.objects.set(objects)
        self.uptime = nanoseconds(time.monotonic() - self._began)
