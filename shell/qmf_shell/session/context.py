"""The state of one session, passed to every command instead of globals."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

import attrs

from qmf.connecting import BrokerTarget, ConnectionContext
from qmf.console.aio.agent_search import ALL_AGENTS
from qmf.errors import DisconnectedError
from qmf.schema import ClassKey, Kind
from qmf.views.conditions import ObjectFilter
from qmf.views.events import EventView
from qmf.views.objects import ObjectView
from qmf_shell.parsing.registry import Registry
from qmf_shell.session.backend import AgentRecord, Backend, ClassName, ObjectLimit, QueryResult
from qmf_shell.session.column_memory import ColumnMemory
from qmf_shell.session.lake_source import LakeSource
from qmf_shell.session.object_names import class_name
from qmf_shell.session.own_objects import CONNECTION, may_be_own, split_own
from qmf_shell.session.prompts import Prompter
from qmf_shell.session.recent import DeletionCounts, LostIdentities, RecentEvents, RecentHeartbeats
from qmf_shell.session.short_ids import ShortIds
from qmf_shell.settings import ShellSettings

if TYPE_CHECKING:
    from qmf.pipeline.history.reader import LakeReader

T = TypeVar("T")


#: How many times as many objects are asked for, if too few of the first ones are shown; then all are.
MORE = 16


@attrs.frozen(eq=False)
class FirstFound:
    """The first objects of a class.

    Attributes:
        objects: at least as many as wanted, unless these are all; not in order.
        others: how many more there are; None if that is not known.
        sure: all of these would be shown as well; else perhaps fewer.
    """

    objects: Sequence[ObjectView]
    others: int | None = 0
    sure: bool = True


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
        lost: the objects whose agent is gone.
        columns: the columns that the user chose for classes.
        settings: the user's settings.
        connection: the named context that the brokers are of, or None.
        lake: the lake that the command line names, or none; see `past`.
        switch: goes on with other brokers, of a named context or of none; None where the session has no brokers.
        gap: in the past: why values may be older than the time wanted, and since when; None where they are not.
        prompter: asks the user; None: there is no terminal.
        report: called with the progress of long work, in a few words; must be quick, may be called from any thread.
        warnings: what the user must know besides the result: agents and brokers that did not answer. Emptied before
            each command.
        show_own: lists and events include what agents and consoles create on a broker for themselves.
        hidden: how many objects of a class were left out of the last answer for that reason.
    """

    backend: Backend
    registry: Registry[Context] = attrs.field(factory=Registry)
    ids: ShortIds = attrs.field(factory=ShortIds)
    events: RecentEvents = attrs.field(factory=RecentEvents)
    heartbeats: RecentHeartbeats = attrs.field(factory=RecentHeartbeats)
    deletions: DeletionCounts = attrs.field(factory=DeletionCounts)
    settings: ShellSettings = attrs.field(factory=ShellSettings)
    lost: LostIdentities = attrs.field(factory=LostIdentities)
    columns: ColumnMemory = attrs.field(factory=ColumnMemory)
    connection: ConnectionContext | None = None
    lake: LakeSource = attrs.field(factory=LakeSource)
    switch: Callable[[Sequence[BrokerTarget], ConnectionContext | None], None] | None = None
    gap: Callable[[], tuple[str, int] | None] = lambda: None
    prompter: Prompter | None = None
    report: Callable[[str], None] = lambda _: None
    warnings: list[str] = attrs.field(factory=list)
    show_own: bool = False
    hidden: collections.Counter[ClassName] = attrs.field(factory=collections.Counter)

    @property
    def everything(self) -> bool:
        """True if nothing is left out, by an option or by the settings."""
        return self.show_own or self.settings["own"] == "show"

    def past(self) -> LakeReader:
        """The reader of the lake that the command line or the context names.

        Raises:
            NoLakeError: none of them names one.
            LakeError, MissingExtraError: it cannot be read.
        """
        return self.lake.open(self.connection.lake if self.connection is not None else None)

    @property
    def finding(self) -> str:
        """How far agents are being found, while they are; empty when all are known."""
        return next(filter(None, (status.finding for status in self.backend.statuses)), "")

    def agents(self) -> Sequence[AgentRecord]:
        """The agents that are alive, see `Backend.agents`. Brokers that are not connected become warnings."""
        for status in self.backend.statuses:
            if not status.connected:
                self._warn("broker", status.name, str(DisconnectedError(status.url, status.reason)))
        if self.finding:
            self._warn_incomplete(self.finding)
        return self.backend.agents()

    def classes(self) -> Sequence[ClassKey]:
        """Every version of every class, see `Backend.classes`. Agents that did not answer become warnings."""
        return self._complete(self.backend.classes())

    def object_classes(self) -> list[ClassKey]:
        """Every version of every class of objects, in order; warnings as of `classes`."""
        return sorted(key for key in self.classes() if key.kind is Kind.DATA)

    def objects(
        self, names: Sequence[ClassName], where: Sequence[object] = (), *, everything: bool = False
    ) -> Sequence[ObjectView]:
        """The existing objects of some classes, see `Backend.objects`. Agents that did not answer become warnings.

        Args:
            where: a condition, see there.
            everything: include what agents and consoles create for themselves, whatever `show_own` says.
        """
        found = self._complete(self.backend.objects(names, where)) if names else ()
        return found if everything else self._without_own(names, found, whole=not where)

    def objects_with(self, names: Sequence[ClassName], text: str, limit: int) -> FirstFound:
        """The objects of some classes whose names or values contain a text; warnings as of `objects`.

        Args:
            text: in any case of letters.
            limit: how many are enough; 0 for all.
        """
        answer: QueryResult[ObjectView] = QueryResult(())
        found: Sequence[ObjectView] = ()
        for count in (limit, MORE * limit, 0) if limit and names else (0,) if names else ():
            answer = self.backend.objects(names, (), ObjectLimit(count, ()) if count else None, text)
            received = self._complete(answer)
            found = self._without_own(names, received, whole=False)
            if answer.total is not None and answer.total <= len(received):
                return FirstFound(found)
            if len(found) >= limit:
                break
        others = None if answer.total is None else answer.total - len(answer.items)
        return FirstFound(found, others, self.everything or not any(map(may_be_own, names)))

    def first_objects(self, name: ClassName, first: ObjectLimit, wanted: ObjectFilter) -> FirstFound:
        """The first objects of a class that pass a filter, and what is known of the others; warnings as of `objects`.

        Not for sessions: whether they are own ones takes all connections to know.
        """
        for limit in (first.limit, MORE * first.limit, None):
            part = None if limit is None else attrs.evolve(first, limit=limit)
            answer = self.backend.objects([name], wanted.predicate, part)
            received = self._complete(answer)
            found = self._without_own([name], received, whole=False)
            if wanted.test is not None:
                found = list(filter(wanted.test, found))
            complete = answer.total is not None and answer.total <= len(received)
            if limit is None or len(received) < limit or complete:
                return FirstFound(found)
            if len(found) >= first.limit:
                break
        others = None if answer.total is None else answer.total - len(received)
        sure = wanted.test is None and (self.everything or not may_be_own(name))
        return FirstFound(found, others, sure)

    def _without_own(
        self, names: Sequence[ClassName], found: Sequence[ObjectView], *, whole: bool
    ) -> Sequence[ObjectView]:
        """Objects of some classes without own ones, unless everything is shown; those left out are counted.

        Args:
            whole: these are all of the classes.
        """
        for name in names:
            self.hidden[name] = 0
        if self.everything or not any(map(may_be_own, names)):
            return found
        all_there = whole and CONNECTION in names
        shown, own = split_own(
            found, lambda: found if all_there else self._complete(self.backend.objects([CONNECTION], ()))
        )
        self.hidden.update(class_name(item.identity) for item in own)
        return shown

    def left_out_rows(self, names: Iterable[ClassName]) -> int:
        """How many objects of some classes were left out of the last answer."""
        return sum(self.hidden[name] for name in names)

    def shows_event(self, event: EventView) -> bool:
        """True for an event that is not about what agents and consoles create for themselves, or if all are shown."""
        return self.everything or not event.is_own

    def _complete(self, result: QueryResult[T]) -> Sequence[T]:
        for agent, reason in result.failures.items():
            if agent == ALL_AGENTS:
                self._warn_incomplete(reason)
                continue
            kind = "broker" if agent.startswith("at ") else "agent"
            self._warn(kind, agent.removeprefix("at "), reason)
        return result.items

    def _warn(self, kind: str, name: str, reason: str) -> None:
        self._warn_incomplete(f"{kind} {name} did not answer: {reason}")

    def _warn_incomplete(self, reason: str) -> None:
        warning = f"incomplete: {reason}"
        if warning not in self.warnings:
            self.warnings.append(warning)
