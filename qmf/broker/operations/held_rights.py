"""What a client was granted for what it has, to be asked for again when the policy is another one."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Generic, TypeVar

from qmf.broker.operations.operations import Operations
from qmf.broker.operations.policy import Operation, OperationRefused
from qmf.broker.operations.principal import Principal

K = TypeVar("K", bound=Hashable)


class HeldRights(Generic[K]):
    """The rights of one client, by what it has them for: its links, or its subscriptions."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations
        self._held: dict[K, Sequence[Operation]] = {}

    @contextmanager
    def record_grants(self, key: K) -> Iterator[None]:
        """What is granted within is held for something, unless an error refuses it."""
        with self._operations.record_grants() as granted:
            yield
        if granted:
            self._held[key] = tuple(granted)

    def forget(self, key: K) -> None:
        """Something is gone."""
        self._held.pop(key, None)

    def missing(self, principal: Principal) -> Sequence[tuple[K, OperationRefused]]:
        """What lacks a right that it had, each with the reason."""
        found = []
        for key, held in self._held.items():
            try:
                self._operations.ask_again(principal, held)
            except OperationRefused as error:
                found.append((key, error))
        return found

    def first_missing(self, principal: Principal) -> str:
        """Why a right has ended; empty if the client has all."""
        return next((str(error) for _, error in self.missing(principal)), "")
