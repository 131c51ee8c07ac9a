"""The state of one session, passed to every command instead of globals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import attrs

from qmf.connecting import ConnectionContext
from qmf.errors import DisconnectedError
from qmf.schema import ClassKey
from qmf_shell.parsing.registry import Registry
from qmf_shell.session.backend import AgentRecord, Backend, ClassName, ObjectRecord, QueryResult
from qmf_shell.session.column_memory import ColumnMemory
from qmf_shell.session.prompts import Prompter
from qmf_shell.session.recent import DeletionCounts, RecentEvents, RecentHeartbeats
from qmf_shell.session.short_ids import ShortIds
from qmf_shell.settings import ShellSettings

T = TypeVar("T")


def _ignore(text: str) -> None:
    del text


@attrs.define
class Context:
    """What a command may use.

    Attributes:
        backend: access to the bus.
        registry: all commands.
        ids: short ids.
        events: events received so far.
        heartbeats: heartbeats received so far.
        deletions: how many objects were deleted so far, if objects are followed.
        columns: the columns that the user chose for classes.
        settings: the user's settings.
        connection: the named context that the brokers are of, or None.
        prompter: asks the user; None: there is no terminal.
        report: called with the progress of long work, in a few words; must be quick, may be called from any thread.
        warnings: what the user must know besides the result: agents and brokers that did not answer. Emptied before
            each command.
    """

    backend: Backend
    registry: Registry[Context] = attrs.field(factory=Registry)
    ids: ShortIds = attrs.field(factory=ShortIds)
    events: RecentEvents = attrs.field(factory=RecentEvents)
    heartbeats: RecentHeartbeats = attrs.field(factory=RecentHeartbeats)
    deletions: DeletionCounts = attrs.field(factory=DeletionCounts)
    settings: ShellSettings = attrs.field(factory=ShellSettings)
    columns: ColumnMemory = attrs.field(factory=ColumnMemory)
    connection: ConnectionContext | None = None
    prompter: Prompter | None = None
    report: Callable[[str], None] = _ignore
    warnings: list[str] = attrs.field(factory=list)

    def agents(self) -> Sequence[AgentRecord]:
        """The agents that are alive, see `Backend.agents`. Brokers that are not connected become warnings."""
        for status in self.backend.statuses:
            if not status.connected:
                self._warn("broker", status.name, str(DisconnectedError(status.url, status.reason)))
        return self.backend.agents()

    def classes(self) -> Sequence[ClassKey]:
        """Every version of every class, see `Backend.classes`. Agents that did not answer become warnings."""
        return self._complete(self.backend.classes())

    def objects(self, names: Sequence[ClassName], where: Sequence[object] = ()) -> Sequence[ObjectRecord]:
        """All existing objects of some classes, see `Backend.objects`. Agents that did not answer become warnings."""
        return self._complete(self.backend.objects(names, where)) if names else ()

    def _complete(self, result: QueryResult[T]) -> Sequence[T]:
        for agent, reason in result.failures.items():
            kind = "broker" if agent.startswith("at ") else "agent"
            self._warn(kind, agent.removeprefix("at "), reason)
        return result.items

    def _warn(self, kind: str, name: str, reason: str) -> None:
        warning = f"incomplete: {kind} {name} did not answer: {reason}"
        if warning not in self.warnings:
            self.warnings.append(warning)
