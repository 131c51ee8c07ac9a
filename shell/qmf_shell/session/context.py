"""The state of one session, handed to every command: no globals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import attrs

from qmf.schema import ClassKey
from qmf_shell.registry import Registry
from qmf_shell.session.events import EventRing
from qmf_shell.session.ids import Ids
from qmf_shell.session.source import ClassName, Found, Object, Source

T = TypeVar("T")


@attrs.define
class Context:
    """What a command may use.

    Attributes:
        source: the bus.
        registry: all commands.
        ids: short ids.
        events: events received so far.
        warnings: what the user must know besides the result: agents that did not answer. Emptied with each command.
    """

    source: Source
    registry: Registry
    ids: Ids = attrs.field(factory=Ids)
    events: EventRing = attrs.field(factory=EventRing)
    warnings: list[str] = attrs.field(factory=list)

    def classes(self) -> Sequence[ClassKey]:
        """Every version of every class, see `Source.classes`. Agents that did not answer become warnings."""
        return self._complete(self.source.classes())

    def objects(self, names: Sequence[ClassName]) -> Sequence[Object]:
        """All living objects of some classes, see `Source.objects`. Agents that did not answer become warnings."""
        return self._complete(self.source.objects(names)) if names else ()

    def _complete(self, found: Found[T]) -> Sequence[T]:
        for agent, reason in found.failures.items():
            warning = f"incomplete: agent {agent} did not answer: {reason}"
            if warning not in self.warnings:
                self.warnings.append(warning)
        return found.items
