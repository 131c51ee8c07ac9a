"""What several agents answered to one question, together with who did not answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar, overload

import attrs

from qmf.errors import QmfError, RequestTimeout

T = TypeVar("T")


@attrs.frozen(repr=False)
class Answers(Sequence[T]):
    """The merged answers of all agents that answered; reads like a list.

    Attributes:
        items: the answers, agent by agent in the order asked.
        failures: why an agent gave none, by its name; empty when all answered.
    """

    items: tuple[T, ...] = ()
    failures: Mapping[str, QmfError] = attrs.field(factory=dict)

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
        failed = f", no answer from {', '.join(sorted(self.failures))}" if self.failures else ""
        return f"<{list(self.items)!r}{failed}>"


def one_failure(failures: Mapping[str, QmfError]) -> QmfError:
    """The error to raise when every agent failed: the most telling one, with the others as notes.

    An agent that said why not tells more than one that stayed silent.
    """
    ranked = sorted(failures.items(), key=lambda item: isinstance(item[1], RequestTimeout))
    (_, worst), *others = ranked
    for agent, error in others:
        worst.add_note(f"also {agent}: {error}")
    return worst
