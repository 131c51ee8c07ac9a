"""What each link of a client was granted, to be asked for again when the policy is another one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from qmf.broker.operations.operations import Operations
from qmf.broker.operations.policy import Operation, OperationRefused
from qmf.broker.operations.principal import Principal
from qmf.bus.engine.link import Link


class LinkRights:
    """The rights of the links of one client."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations
        self._held: dict[Link, Sequence[Operation]] = {}

    @contextmanager
    def record_grants(self, link: Link) -> Iterator[None]:
        """What is granted within belongs to a link, unless an error refuses it."""
        with self._operations.record_grants() as granted:
            yield
        if granted:
            self._held[link] = tuple(granted)

    def forget(self, link: Link) -> None:
        """A link is gone."""
        self._held.pop(link, None)

    def links_without_right(self, principal: Principal) -> Sequence[tuple[Link, OperationRefused]]:
        """The links that lack a right which they had, each with the reason."""
        found = []
        for link, held in self._held.items():
            try:
                self._operations.ask_again(principal, held)
            except OperationRefused as error:
                found.append((link, error))
        return found
