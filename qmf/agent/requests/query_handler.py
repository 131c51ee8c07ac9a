"""Queries for objects and schemas (QMF2.md 4.4).

Decisions where peers differ:

* an object id takes precedence over a class; an empty package in a class key matches any, and the hash of a class is
  ignored;
* a query for OBJECT_ID is answered like one for OBJECT, with ids and class keys, without values;
* consoles that read rows get rows (docs/protocol.md);
* a query with a limit gets the first objects in its order, and how many there are (docs/protocol.md);
* `_select` lists wire names; the name of a min/max/average statistic stands for its four values.

Values are read batch by batch while the answer is sent, so that large answers never block the loop. Each object is
consistent in itself; the whole answer is not a snapshot of one instant.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any, TypeVar

import attrs

from qmf.agent.layout import object_state
from qmf.agent.metrics import AgentMetrics
from qmf.agent.model.managed_object import ManagedObject
from qmf.agent.objects.object_sources import ObjectSelection, ObjectSources
from qmf.agent.publishing.object_writer import Item, ObjectWriter
from qmf.agent.publishing.row_writer import Row, RowWriter
from qmf.agent.requests.access import AccessControl, Action
from qmf.agent.requests.first_objects import FirstObjects, ProvidedItem
from qmf.agent.requests.query_answer import QueryAnswer
from qmf.agent.requests.selections import (
    Matcher,
    class_of_selection,
    compile_where,
    invalid_query,
    selection_of,
)
from qmf.agent.sending.message_batcher import MAX_ROW_BYTES, MAX_ROWS, BatchedSender, MessageBatcher, report_unencodable
from qmf.agent.sending.message_sender import MessageSender
from qmf.errors import QmfError
from qmf.protocol import (
    ROW_FORM,
    Content,
    Envelope,
    ObjectData,
    ObjectId,
    ObjectsResponse,
    QueryRequest,
    SchemaIdsResponse,
    SchemasResponse,
    What,
)
from qmf.schema import ClassKey, ClassSchema, EventSchema

T = TypeVar("T")

#: Objects examined between two turns of the loop; about 1 ms.
_SCAN = 100

#: Schemas or their keys in a message; in practice `MAX_BYTES` comes first.
MAX_SCHEMAS = 1000


class QueryHandler:
    """Answers queries for one agent."""

    def __init__(
        self,
        sources: ObjectSources,
        writer: ObjectWriter,
        sender: MessageSender,
        access: AccessControl,
        metrics: AgentMetrics,
    ) -> None:
        self._sources = sources
        self._writer = writer
        self._rows = RowWriter(sources.store)
        self._sender = sender
        self._access = access
        self._metrics = metrics

    async def answer(self, request: Envelope, query: QueryRequest) -> None:
        """Answer a query.

        Raises:
            RequestRefused: the query is invalid or not allowed, or a provider failed; batches may have been sent
                before.
        """
        self._metrics.add("queries")
        matches = compile_where(query.where)
        if query.what is What.SCHEMA_ID:
            await self._access.check(request, Action.QUERY, what=query.what)
            keys = [schema.key for schema in self._sources.store.schemas()]
            await self._send(request, keys, SchemaIdsResponse)
        elif query.what is What.SCHEMA:
            found = self._find_schemas(query.class_key)
            await self._access.check(request, Action.QUERY, what=query.what, class_key=query.class_key)
            await self._send(request, found, SchemasResponse)
        else:
            selection = selection_of(query, query.what.value)
            key = class_of_selection(self._sources, selection)
            await self._access.check(request, Action.QUERY, what=query.what, class_key=key, object_id=query.object_id)
            await self._answer_objects(request, query, selection, matches)

    def _find_schemas(self, key: ClassKey | None) -> list[ClassSchema | EventSchema]:
        if key is None or not key.name:
            raise invalid_query("a query for SCHEMA must name a class in '_schema_id'")
        # Object classes are in lower case on the wire, but the name may have been typed as in the XML.
        named = self._sources.store.schemas_named(key.name, key.name.lower())
        return [schema for schema in named if _matches_key(schema.key, key)]

    async def _answer_objects(
        self, request: Envelope, query: QueryRequest, selection: ObjectSelection, matches: Matcher
    ) -> None:
        ids_only = query.what is What.OBJECT_ID
        rows = self._rows if query.row_form >= ROW_FORM and not ids_only else None
        answer = QueryAnswer(self._writer, rows, selection, matches, ids_only=ids_only)
        first = FirstObjects(query.limit, selection, matches, self._metrics) if query.limit else None

        def encode(items: Sequence[Item | Row], more: bool) -> bytes:
            content, body = answer.content(items)
            if first is not None and not more and isinstance(content, ObjectsResponse):
                content = attrs.evolve(content, matched=first.matched)
            return self._sender.encode_answer(request, content, partial=more, number=batches.sent + 1, body=body)

        batcher = (
            MessageBatcher(self._metrics) if rows is None else MessageBatcher(self._metrics, MAX_ROWS, MAX_ROW_BYTES)
        )
        batches: BatchedSender[Item | Row] = BatchedSender(batcher, encode, self._send_batch)
        try:
            if first is not None:
                await self._add_first(batches, answer, selection, first)
            elif await self._add_stored(batches, answer, selection):
                for provided in self._sources.providers(selection):
                    async with aclosing(self._sources.provided_objects(provided, selection)) as provided_batches:
                        async for batch in provided_batches:
                            await batches.extend(self._items(partial(answer.provided_item, provided.layout), batch))
            await batches.finish()
        except _ConnectionLost:
            return

    async def _add_stored(
        self, batches: BatchedSender[Item | Row], answer: QueryAnswer, selection: ObjectSelection
    ) -> bool:
        """Add the stored objects; True if there may be provided ones, too."""
        stored = self._sources.stored_objects(selection)
        for start in range(0, len(stored), _SCAN):
            # Some may have been removed while others were sent.
            still_stored = object_state.select_owned(self._sources.store, stored[start : start + _SCAN])
            await batches.extend(self._items(answer.stored_item, still_stored))
            await asyncio.sleep(0)
        return not stored or selection.object_id is None

    async def _add_first(
        self,
        batches: BatchedSender[Item | Row],
        answer: QueryAnswer,
        selection: ObjectSelection,
        first: FirstObjects,
    ) -> None:
        """Add the first objects of a query with a limit, after all have been looked at."""
        stored = self._sources.stored_objects(selection)
        step = _SCAN if first.reads_values else max(1, len(stored))
        for start in range(0, len(stored), step):
            first.add(object_state.select_owned(self._sources.store, stored[start : start + step]))
            await asyncio.sleep(0)
        for provided in self._sources.providers(selection) if not stored or selection.object_id is None else ():
            async with aclosing(self._sources.provided_objects(provided, selection)) as provided_batches:
                async for batch in provided_batches:
                    first.add_provided(provided.layout, batch)
        chosen = first.choose()
        for start in range(0, len(chosen), _SCAN):
            await batches.extend(self._items(partial(self._first_item, answer), chosen[start : start + _SCAN]))
            await asyncio.sleep(0)

    def _first_item(self, answer: QueryAnswer, item: ManagedObject | ProvidedItem) -> Item | Row | None:
        if isinstance(item, ProvidedItem):
            return answer.provided_item(item.layout, item.data)
        # It may have been removed since it was chosen.
        return answer.stored_item(item) if object_state.owner(item) is self._sources.store else None

    def _items(self, make: Callable[[Any], Item | Row | None], objects: Sequence[Any]) -> list[Item | Row]:
        items = []
        for obj in objects:
            try:
                item = make(obj)
            except (ValueError, QmfError) as error:
                report_unencodable(self._metrics, _object_id(obj), error)
            else:
                if item is not None:
                    items.append(item)
        return items

    async def _send(self, request: Envelope, items: Sequence[T], kind: Callable[[Sequence[T]], Content]) -> None:
        batches = self._batches(request, kind, MessageBatcher(self._metrics, MAX_SCHEMAS))
        try:
            for item in items:
                await batches.add(item)
            await batches.finish()
        except _ConnectionLost:
            return

    def _batches(
        self, request: Envelope, kind: Callable[[Sequence[T]], Content], batcher: MessageBatcher
    ) -> BatchedSender[T]:
        def encode(items: Sequence[T], partial: bool) -> bytes:
            return self._sender.encode_answer(request, kind(items), partial=partial, number=batches.sent + 1)

        batches = BatchedSender(batcher, encode, self._send_batch)
        return batches

    async def _send_batch(self, data: bytes, last: bool) -> None:  # noqa: ARG002  # the message has a mark
        if not await self._sender.answer_encoded(data):
            raise _ConnectionLost


def _object_id(item: ManagedObject | ProvidedItem | ObjectData) -> ObjectId | None:
    if isinstance(item, ProvidedItem):
        return item.data.object_id
    return item.object_id if isinstance(item, ObjectData) else object_state.object_id(item)


class _ConnectionLost(Exception):
    """The connection is lost: the rest of the answer is dropped."""


def _matches_key(key: ClassKey, queried: ClassKey) -> bool:
    """True for a key whose name fits, if package and hash do, too."""
    return queried.package in ("", key.package) and queried.hash in (None, key.hash)
