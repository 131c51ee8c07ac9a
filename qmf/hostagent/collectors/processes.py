"""The processes shown, and events about watched ones; `process_selection` selects them."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from qmf.hostagent.collectors.base import Collector, CollectorContext, ObjectsByKey
from qmf.hostagent.collectors.counters import CounterChanges
from qmf.hostagent.collectors.process_object import ProcessObject
from qmf.hostagent.collectors.process_selection import ProcessKey, ProcessSelector, SelectedProcess
from qmf.hostagent.conversions import clip, nanoseconds, percent
from qmf.models.host import agent as model

_COMMAND_LINE = 4096


@attrs.frozen
class ProcessReading:
    """All processes to be shown; `memory` is the machine's, in octets."""

    now: float
    memory: int
    processes: Sequence[SelectedProcess]


class ProcessCollector(Collector[ProcessReading]):
    """One object per process shown."""

    what = "the processes"

    def __init__(self, context: CollectorContext) -> None:
        super().__init__(context)
        settings = context.settings
        self._selector = ProcessSelector(settings.shown, settings.watch, command_lines=settings.command_lines)
        self._objects: ObjectsByKey[ProcessKey, ProcessObject] = ObjectsByKey(context.agent)
        self._changes: CounterChanges[ProcessKey] = CounterChanges()
        self._first = True

    def find(self, pid: int) -> ProcessObject | None:
        """The object of the process with this number, or None."""
        return next((obj for obj in self._objects.values() if obj.pid == pid), None)

    def read(self) -> ProcessReading:
        machine = self.context.machine
        return ProcessReading(machine.monotonic(), machine.ps.virtual_memory().total, self._selector.read(machine.ps))

    def apply(self, reading: ProcessReading) -> None:
        watched = {process.key for process in reading.processes if process.watched}
        for obj in self._objects.values():
            # A process that runs another program by now counts as gone.
            if obj.watched and (obj.pid, obj.started) not in watched:
                self._raise_event(obj, model.ProcessGone)
        keys = {process.key for process in reading.processes}
        self._objects.keep(keys)
        self._changes.keep(keys)
        for process in reading.processes:
            with self.context.reporting_invalid_values(f"process {process.handle.pid}"):
                self._update(process, reading)
        by_pid = {obj.pid: obj for obj in self._objects.values()}
        for obj in by_pid.values():
            obj.parentProcess = by_pid.get(obj.parentPid)
        self._first = False

    def _update(self, process: SelectedProcess, reading: ProcessReading) -> None:
        obj = self._objects.get(process.key)
        if obj is None:
            allowed = self.context.settings.allow_signals
            obj = ProcessObject(process.handle, system=self.context.system, allowed=allowed)
            obj.started = process.started
            self._objects.add(process.key, obj)
        _set_identity(obj, process)
        _set_numbers(obj, process, reading.memory)
        self._set_times(obj, process, reading.now)
        is_new = process.watched and not obj.watched
        obj.watched = process.watched
        # Processes found at the start of the agent have not just started.
        if is_new and not self._first:
            self._raise_event(obj, model.ProcessStarted)

    def _set_times(self, obj: ProcessObject, process: SelectedProcess, now: float) -> None:
        times = process.fields.get("cpu_times")
        if times is None:
            return
        obj.userTime = nanoseconds(times.user)
        obj.systemTime = nanoseconds(times.system)
        change = self._changes.record(process.key, now, times.user + times.system)
        if change is not None:
            obj.cpuPercent = 100.0 * change.rate(0)

    def _raise_event(self, obj: ProcessObject, event: type[model.ProcessStarted] | type[model.ProcessGone]) -> None:
        self.context.agent.raise_event(event(pid=obj.pid, processName=obj.name, started=obj.started))


def _set_identity(obj: ProcessObject, process: SelectedProcess) -> None:
    fields = process.fields
    user = fields.get("username")
    command = " ".join(fields.get("cmdline") or ())
    obj.name = clip(fields.get("name") or "")
    obj.commandLine = clip(command, _COMMAND_LINE) or None
    obj.user = clip(user) if user else None
    obj.parentPid = fields.get("ppid") or 0


def _set_numbers(obj: ProcessObject, process: SelectedProcess, memory: int) -> None:
    fields = process.fields
    obj.state = clip(fields.get("status") or "")
    obj.nice = fields.get("nice") or 0
    obj.threads.set(fields.get("num_threads") or 0)
    obj.openFiles.set(fields.get("num_fds") or 0)
    if (size := fields.get("memory_info")) is not None:
        obj.residentMemory.set(size.rss)
        obj.virtualMemory.set(size.vms)
        obj.memoryPercent = percent(size.rss, memory)
    if (io := fields.get("io_counters")) is not None:
        obj.bytesRead.set(io.read_bytes)
        obj.bytesWritten.set(io.write_bytes)
    if (switches := fields.get("num_ctx_switches")) is not None:
        obj.voluntarySwitches.set(switches.voluntary)
        obj.involuntarySwitches.set(switches.involuntary)
