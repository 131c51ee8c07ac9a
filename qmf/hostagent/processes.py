"""The processes shown: what each does, and which watched ones came and went. Which are shown is `choice`'s business."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from qmf.hostagent.changes import Changes
from qmf.hostagent.choice import Choice, Key, Row
from qmf.hostagent.collector import Collector, Context, Objects
from qmf.hostagent.process import Process
from qmf.hostagent.values import clip, nanoseconds, percent
from qmf.models.host import agent as model

_COMMAND_LINE = 4096


@attrs.frozen
class ProcessReading:
    """All processes to be shown; `memory` is the machine's, in octets."""

    now: float
    memory: int
    rows: Sequence[Row]


class ProcessCollector(Collector[ProcessReading]):
    """One object per process shown."""

    what = "the processes"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        settings = context.settings
        self._choice = Choice(settings.shown, settings.watch, command_lines=settings.command_lines)
        self._objects: Objects[Key, Process] = Objects(context.agent)
        self._changes: Changes[Key] = Changes()
        self._first = True

    def find(self, pid: int) -> Process | None:
        """The object of the process with this number, or None."""
        return next((obj for obj in self._objects.values() if obj.pid == pid), None)

    def read(self) -> ProcessReading:
        machine = self.context.machine
        return ProcessReading(machine.monotonic(), machine.ps.virtual_memory().total, self._choice.read(machine.ps))

    def apply(self, reading: ProcessReading) -> None:
        watched = {row.key for row in reading.rows if row.watched}
        for obj in self._objects.values():
            # One that runs another program now is gone, too.
            if obj.watched and (obj.pid, obj.started) not in watched:
                self._tell(obj, model.ProcessGone)
        keys = {row.key for row in reading.rows}
        self._objects.keep(keys)
        self._changes.keep(keys)
        for row in reading.rows:
            with self.context.one(f"process {row.handle.pid}"):
                self._update(row, reading)
        by_pid = {obj.pid: obj for obj in self._objects.values()}
        for obj in by_pid.values():
            obj.parentProcess = by_pid.get(obj.parentPid)
        self._first = False

    def _update(self, row: Row, reading: ProcessReading) -> None:
        obj = self._objects.get(row.key)
        if obj is None:
            allowed = self.context.settings.allow_signals
            obj = Process(row.handle, system=self.context.system, allowed=allowed)
            obj.started = row.started
            self._objects.add(row.key, obj)
        _set_identity(obj, row)
        _set_numbers(obj, row, reading.memory)
        self._set_times(obj, row, reading.now)
        came = row.watched and not obj.watched
        obj.watched = row.watched
        # What the agent finds when it starts is no news.
        if came and not self._first:
            self._tell(obj, model.ProcessStarted)

    def _set_times(self, obj: Process, row: Row, now: float) -> None:
        times = row.fields.get("cpu_times")
        if times is None:
            return
        obj.userTime = nanoseconds(times.user)
        obj.systemTime = nanoseconds(times.system)
        step = self._changes.step(row.key, now, times.user + times.system)
        if step is not None:
            obj.cpuPercent = 100.0 * step.rate(0)

    def _tell(self, obj: Process, event: type[model.ProcessStarted] | type[model.ProcessGone]) -> None:
        self.context.agent.raise_event(event(pid=obj.pid, processName=obj.name, started=obj.started))


def _set_identity(obj: Process, row: Row) -> None:
    fields = row.fields
    user = fields.get("username")
    command = " ".join(fields.get("cmdline") or ())
    obj.name = clip(fields.get("name") or "")
    obj.commandLine = clip(command, _COMMAND_LINE) or None
    obj.user = clip(user) if user else None
    obj.parentPid = fields.get("ppid") or 0


def _set_numbers(obj: Process, row: Row, memory: int) -> None:
    fields = row.fields
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
