"""Answers of several agents as one."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar, overload

import attrs

from qmf.console.aio.agent_search import ALL_AGENTS
from qmf.errors import QmfError, RequestTimeout

log = logging.getLogger("qmf.console")

T = TypeVar("T")


@attrs.frozen(repr=False)
class Answers(Sequence[T]):
    """The merged answers of all agents that answered; reads like a list.

    Attributes:
        items: the answers, agent by agent in the order asked.
        failures: the errors of the agents that did not answer, by agent name; empty when all answered. Under the name
            ``*`` a `StillFindingAgents`, if agents may be there that were not asked.
        total: how many there are without the limit of the request, at the agents that answered; None where that is
            not known, since some agents were not asked for all, or did not say.
    """

    items: tuple[T, ...] = ()
    failures: Mapping[str, QmfError] = attrs.field(factory=dict)
    total: int | None = attrs.field(default=attrs.Factory(lambda self: len(self.items), takes_self=True))

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...

    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __repr__(self) -> str:
        silent = sorted(name for name in self.failures if name != ALL_AGENTS)
        failed = f", no answer from {', '.join(silent)}" if silent else ""
        failed += f", {self.failures[ALL_AGENTS]}" if ALL_AGENTS in self.failures else ""
        return f"<{list(self.items)!r}{failed}>"


def combined_failure(failures: Mapping[str, QmfError]) -> QmfError:
    """The error to raise when every agent failed: the most informative one, with the others as notes.

    An agent's refusal is more informative than a timeout.
    """
    ranked = sorted(failures.items(), key=lambda item: isinstance(item[1], RequestTimeout))
    (_, first), *others = ranked
    for agent, error in others:
        first.add_note(f"also {agent}: {error}")
    return first


def check_failures(failures: Mapping[str, QmfError], asked: int) -> None:
    """Raise when all agents failed."""
    if failures and len(failures) == asked:
        raise combined_failure(failures)


def log_failures(failures: Mapping[str, QmfError]) -> None:
    """Log why agents gave no answer, and that some may not have been asked."""
    for name, error in failures.items():
        if name == ALL_AGENTS:
            log.warning("an answer is not complete: %s", error)
        else:
            log.warning("agent %s gave no answer: %s", name, error)
