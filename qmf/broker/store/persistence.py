"""What a broker with a data folder has: the store, its journal, and the recorder of its definitions."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from qmf.broker.nodes.observer import BrokerObservers
from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.store.definitions import DefinitionRecorder
from qmf.broker.store.folder import DataFolder
from qmf.broker.store.journal import Journal
from qmf.broker.store.link_memories import StoredMemories
from qmf.broker.store.pages import MessagePages
from qmf.broker.store.store import Store


class Persistence:
    """The data folder of a broker, from its start to its end.

    Attributes:
        forwarders: what forwards messages, which the broker has to restore itself.
        path: of the file with the definitions.
    """

    def __init__(self, path: Path, registry: NodeRegistry) -> None:
        """Open or create the data folder, and create what is in it. Belongs to the running loop.

        Args:
            registry: of the broker; its durable nodes and messages are recorded from now on.

        Raises:
            StoreError: the folder is in use by another process, cannot be written to, or is damaged.
        """
        self._registry = registry
        with ExitStack() as opened:
            self._folder = DataFolder(path)
            self.path = self._folder.database
            opened.callback(self._folder.close)
            self._pages = MessagePages()
            opened.callback(self._pages.close)
            self._store = Store(self._folder)
            opened.callback(self._store.discard)
            self._restore()
            opened.pop_all()

    def _restore(self) -> None:
        registry = self._registry
        self._journal = Journal(self._store, registry.clock)
        recorder = DefinitionRecorder(self._store, self._journal, self._pages, registry, self._folder)
        registry.recorder = self._journal
        try:
            recorder.restore()
        except BaseException:
            registry.recorder = None
            raise
        self.forwarders = recorder.forwarders
        registry.memories = StoredMemories(self._store, self._journal).restore()
        self._store.start()
        registry.observer = BrokerObservers(registry.observer, recorder)
        recorder.end_unused()

    async def close(self) -> None:
        """Write what is left, and let go of the folder."""
        self._journal.close()
        await self._store.close()
        self._pages.close()
        self._folder.close()
