"""Queries: objects and schemas for consoles that ask (QMF2.md 4.4).

Decisions where peers differ:

* an object id wins over a class; of a class key only a non-empty package counts, and the hash never does;
* a query for OBJECT_ID is answered like one for OBJECT, with ids and class keys and without values;
* consoles that read rows get them (docs/protocol.md);
* `_select` keeps the wire names it lists; the name of a min/max/average statistic stands for its four values.

Values are read part by part while the answer is sent: each object is consistent in itself, ten thousand are not a
snapshot of one instant, and they never hold up the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any, TypeVar

import attrs

from qmf.agent.layout import object_state
from qmf.agent.layout.class_layout import ClassLayout
from qmf.agent.metrics import AgentMetrics
from qmf.agent.objects.object_sources import ObjectSelection, ObjectSources, expand_selection
from qmf.agent.publishing.object_writer import Item, ObjectWriter
from qmf.agent.publishing.row_writer import Row, RowWriter, reads_rows
from qmf.agent.request_errors import RequestRefused
from qmf.agent.requests.access import AccessControl, Action
from qmf.agent.requests.query_answer import Matcher, QueryAnswer
from qmf.agent.sending.message_batcher import MAX_ROW_BYTES, MAX_ROWS, BatchedSender, MessageBatcher, report_unencodable
from qmf.agent.sending.message_sender import MessageSender
from qmf.errors import ProtocolError, QmfError
from qmf.protocol import (
    Content,
    Envelope,
    ErrorCode,
    ObjectData,
    Predicate,
    QueryRequest,
    SchemaIdsResponse,
    SchemasResponse,
    SubscribeRequest,
    What,
    compile_predicate,
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
        """QueryAnswer one query.

        Raises:
            RequestRefused: the query is invalid, not allowed, or failed on the way; parts may have been sent before.
        """
        self._metrics.add("queries")
        fits = compile_where(query.where)
        if query.what is What.SCHEMA_ID:
            await self._access.check(request, Action.QUERY, what=query.what)
            keys = [schema.key for schema in self._sources.store.schemas()]
            await self._send(request, keys, SchemaIdsResponse)
        elif query.what is What.SCHEMA:
            found = self._find_schemas(query.class_key)
            await self._access.check(request, Action.QUERY, what=query.what, class_key=query.class_key)
            await self._send(request, found, SchemasResponse)
        else:
            wanted = selection_of(query, query.what.value)
            key = class_of_selection(self._sources, wanted)
            await self._access.check(request, Action.QUERY, what=query.what, class_key=key, object_id=query.object_id)
            await self._answer_objects(request, query, wanted, fits)

    def _find_schemas(self, key: ClassKey | None) -> list[ClassSchema | EventSchema]:
        if key is None or not key.name:
            raise _invalid("a query for SCHEMA must name a class in '_schema_id'")
        return [schema for schema in self._sources.store.schemas() if _is_asked_for(schema.key, key)]

    async def _answer_objects(
        self, request: Envelope, query: QueryRequest, wanted: ObjectSelection, fits: Matcher
    ) -> None:
        ids_only = query.what is What.OBJECT_ID
        rows = self._rows if reads_rows(query.row_form) and not ids_only else None
        answer = QueryAnswer(self._writer, rows, wanted, fits, ids_only=ids_only)

        def build(items: Sequence[Item | Row], more: bool) -> bytes:
            content, body = answer.content(items)
            return self._sender.encode_answer(request, content, partial=more, body=body)

        packer = (
            MessageBatcher(self._metrics) if rows is None else MessageBatcher(self._metrics, MAX_ROWS, MAX_ROW_BYTES)
        )
        parts: BatchedSender[Item | Row] = BatchedSender(packer, build, self._send_part)
        try:
            if await self._add_stored(parts, answer, wanted):
                for provided in self._sources.providers(wanted):
                    async with aclosing(self._sources.provided(provided, wanted)) as batches:
                        async for batch in batches:
                            await parts.extend(self._items(partial(answer.provided, provided.layout), batch))
            await parts.finish()
        except _ConnectionLost:
            return

    async def _add_stored(self, parts: BatchedSender[Item | Row], answer: QueryAnswer, wanted: ObjectSelection) -> bool:
        """Take the objects that the agent has; True if there may be provided ones, too."""
        stored = self._sources.stored(wanted)
        for start in range(0, len(stored), _SCAN):
            # Some may have gone while others were sent.
            there = object_state.owned_by(self._sources.store, stored[start : start + _SCAN])
            await parts.extend(self._items(answer.stored, there))
            await asyncio.sleep(0)
        return not stored or wanted.object_id is None

    def _items(self, make: Callable[[Any], Item | Row | None], objects: Sequence[Any]) -> list[Item | Row]:
        items = []
        for obj in objects:
            try:
                item = make(obj)
            except (ValueError, QmfError) as error:
                object_id = obj.object_id if isinstance(obj, ObjectData) else object_state.object_id(obj)
                report_unencodable(self._metrics, object_id, error)
            else:
                if item is not None:
                    items.append(item)
        return items

    async def _send(self, request: Envelope, items: Sequence[T], kind: Callable[[Sequence[T]], Content]) -> None:
        parts = self._parts(request, kind, MessageBatcher(self._metrics, MAX_SCHEMAS))
        try:
            for item in items:
                await parts.add(item)
            await parts.finish()
        except _ConnectionLost:
            return

    def _parts(
        self, request: Envelope, kind: Callable[[Sequence[T]], Content], packer: MessageBatcher
    ) -> BatchedSender[T]:
        def build(items: Sequence[T], partial: bool) -> bytes:
            return self._sender.encode_answer(request, kind(items), partial=partial)

        return BatchedSender(packer, build, self._send_part)

    async def _send_part(self, data: bytes, last: bool) -> None:  # noqa: ARG002  # the message itself says whether it is
        if not await self._sender.answer_encoded(data):
            raise _ConnectionLost


class _ConnectionLost(Exception):
    """The connection is gone: the rest of the answer need not be made."""


def compile_where(where: Predicate) -> Matcher:
    """The function that a predicate stands for.

    Raises:
        RequestRefused: it is not well formed.
    """
    try:
        return compile_predicate(where)
    except ProtocolError as error:
        raise _invalid(f"invalid predicate: {error}") from error


def selection_of(request: QueryRequest | SubscribeRequest, what: str) -> ObjectSelection:
    """What a request for objects wants; `what` is its word for errors.

    Raises:
        RequestRefused: it names neither class nor object.
    """
    if request.object_id is None and request.class_key is None:
        raise _invalid(f"a query for {what} must have an '_object_id' or a '_schema_id'")
    return ObjectSelection(
        class_key=request.class_key, object_id=request.object_id, where=request.where, select=request.select
    )


def class_of_selection(sources: ObjectSources, wanted: ObjectSelection) -> ClassKey | None:
    """The class whose objects are meant, as far as it is known."""
    for obj in sources.stored(wanted) if wanted.object_id is not None else ():
        return object_state.layout(obj).key
    for provided in sources.providers(wanted):
        return provided.layout.key
    return wanted.class_key if wanted.object_id is None else None


def with_selected_values(data: ObjectData, layout: ClassLayout, wanted: ObjectSelection) -> ObjectData:
    """An object with no more than the values that are wanted."""
    if not wanted.select:
        return data
    names = expand_selection(layout, wanted.select)
    return attrs.evolve(data, values={name: value for name, value in data.values.items() if name in names})


def _is_asked_for(key: ClassKey, asked: ClassKey) -> bool:
    # Object classes are in lower case on the wire, but a person may have typed the name as in the XML.
    same_name = key.name == asked.name or key.name == asked.name.lower()
    return same_name and asked.package in ("", key.package) and asked.hash in (None, key.hash)


def _invalid(text: str) -> RequestRefused:
    return RequestRefused(ErrorCode.UNKNOWN_OBJECT, text)
