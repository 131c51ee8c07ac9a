"""The memories of lasting links in the store: which messages came on them whose senders don't know the outcome yet."""

from __future__ import annotations

from collections.abc import Sequence

from qmf.broker.nodes.link_memory import LinkMemories
from qmf.broker.store.journal import Journal
from qmf.broker.store.store import Store
from qmf.broker.store.unit import Definition, DefinitionKind


class StoredMemories:
    """The `MemoryKeeper` of a broker with a data folder."""

    def __init__(self, store: Store, journal: Journal) -> None:
        self._store = store
        self._journal = journal

    def define(self, name: str) -> int:
        id = self._store.next_definition_id()
        self._journal.define(Definition(id, DefinitionKind.REMEMBERED_LINK, name, {}))
        return id

    def undefine(self, id: int) -> None:
        self._journal.undefine(id)

    def remember(self, id: int, record: int, tags: Sequence[int]) -> bool:
        return self._journal.remember(id, record, tags)

    def forget(self, id: int, records: Sequence[int]) -> None:
        self._journal.forget(id, records)

    def restore(self) -> LinkMemories:
        """The memories as the store has them. To be called before the store is started.

        Raises:
            StoreError: they cannot be read.
        """
        accepted = self._store.recover_acceptances()
        links = [each for each in self._store.definitions if each.kind is DefinitionKind.REMEMBERED_LINK]
        return LinkMemories(self, {each.name: (each.id, accepted.get(each.id, {})) for each in links})
