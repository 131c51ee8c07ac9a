"""What can be saved of a store: its rows as definitions and messages, made to fit together again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import attrs

from qmf.broker.nodes.registry import PREDECLARED_EXCHANGES
from qmf.broker.store.errors import StoreDamaged
from qmf.broker.store.page_file import PageFile
from qmf.broker.store.page_rows import PageRow, PageRows
from qmf.broker.store.reading import definition_of, message_of
from qmf.broker.store.unit import Definition, DefinitionKind, StoredMessage

#: Columns of the index of definitions: kind, name, id.
_INDEX = 3

_PREDECLARED = frozenset(name for name, _ in PREDECLARED_EXCHANGES)


class Salvage:
    """Reads a damaged store.

    Attributes:
        faults: what is lost, a line each; complete after `definitions`.
    """

    def __init__(self, pages: PageFile, path: Path) -> None:
        """Prepare for reading a damaged store; `path`: of that file, for errors."""
        self.faults: list[str] = []
        self._rows = PageRows(pages)
        self._path = path
        self._definitions: dict[int, Definition] = {}
        #: What the index of definitions says is defined.
        self._indexed: dict[int, tuple[str, str]] = {}
        #: Number and bytes of messages, by the id of their queue.
        self._counts: dict[int, tuple[int, int]] = {}

    def messages(self) -> Iterator[StoredMessage]:
        """The messages, in any order; those of queues whose definitions are lost, too. To be called once."""
        seen: set[int] = set()
        for row in self._rows:
            message = self._read(row)
            if message is None or message.id in seen:
                continue
            seen.add(message.id)
            count, size = self._counts.get(message.queue, (0, 0))
            self._counts[message.queue] = count + 1, size + len(message.data)
            yield message

    def definitions(self) -> list[Definition]:
        """The definitions, in the order of their ids; to be called once, after the last message.

        A queue whose definition is lost has one without settings. What refers to something that is lost is left out.
        """
        self.faults += self._rows.faults
        self._restore_queues()
        self._remove_dangling()
        return [each for _, each in sorted(self._definitions.items())]

    def _restore_queues(self) -> None:
        """Define the queues that the index or messages name, and whose definitions are lost."""
        for id, (kind, name) in self._indexed.items():
            if id in self._definitions:
                continue
            if kind == DefinitionKind.QUEUE.value:
                self._define(id, name, f"the settings of queue {name!r} are lost: it is saved with the usual ones")
            else:
                self.faults.append(f"{kind} {name!r} is lost")
        for id in sorted(self._counts.keys() - self._definitions.keys()):
            count, _ = self._counts[id]
            name = f"recovered-{id}"
            self._define(id, name, f"the name of a queue is lost: its {count:,} messages are saved in queue {name!r}")

    def _remove_dangling(self) -> None:
        """Leave out bindings, topics and alternate exchanges that refer to what is lost."""
        queues, exchanges = self._names(DefinitionKind.QUEUE), self._names(DefinitionKind.EXCHANGE)
        for id, each in list(self._definitions.items()):
            ends = each.fields
            if each.kind is DefinitionKind.BINDING and not (
                ends.get("queue") in queues and _exists(ends.get("exchange"), exchanges)
            ):
                del self._definitions[id]
                self.faults.append(f"binding {each.name!r} is left out: its exchange or its queue is lost")
            elif each.kind is DefinitionKind.TOPIC and not _exists(ends.get("exchange"), exchanges):
                del self._definitions[id]
                self.faults.append(f"topic {each.name!r} is left out: its exchange is lost")
            elif (alternate := ends.get("alternate-exchange")) and not _exists(alternate, exchanges):
                fields = {name: value for name, value in ends.items() if name != "alternate-exchange"}
                self._definitions[id] = attrs.evolve(each, fields=fields)
                self.faults.append(f"{each.kind.value} {each.name!r} is saved without alternate exchange: that is lost")

    def queues(self) -> dict[str, tuple[int, int]]:
        """Number and bytes of the messages, by the name of their queue; after `definitions`."""
        found = (each for each in self._definitions.values() if each.kind is DefinitionKind.QUEUE)
        return {each.name: self._counts.get(each.id, (0, 0)) for each in found}

    def _read(self, row: PageRow) -> StoredMessage | None:
        """Keep a definition; returns a message."""
        values = row.values
        try:
            match values:
                case [str() as kind, str() as name, int() as id] if row.id is None and len(values) == _INDEX:
                    self._indexed[id] = kind, name
                case [None, str() as kind, str() as name, bytes() as fields] if row.id is not None:
                    self._definitions[row.id] = definition_of(self._path, row.id, kind, name, fields)
                case [
                    None,
                    int() as queue,
                    int() as position,
                    expires,
                    int() as checksum,
                    bytes() as data,
                    deliver,
                    int() as format,
                ] if row.id is not None:
                    return message_of(
                        self._path, row.id, queue, position, _time(expires), checksum, data, _time(deliver), format
                    )
        except StoreDamaged as error:
            self.faults.append(error.reason)
        return None

    def _define(self, id: int, name: str, fault: str) -> None:
        self._definitions[id] = Definition(id, DefinitionKind.QUEUE, name, {"durable": True})
        self.faults.append(fault)

    def _names(self, kind: DefinitionKind) -> set[str]:
        return {each.name for each in self._definitions.values() if each.kind is kind}


def _time(value: object) -> float | None:
    return value if isinstance(value, int | float) else None


def _exists(name: object, exchanges: set[str]) -> bool:
    """True for an exchange that is saved, or that every broker has; the exchanges of QMF's domains are options."""
    return name in exchanges or name in _PREDECLARED or (isinstance(name, str) and name.startswith("qmf."))
