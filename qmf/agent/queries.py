"""Queries: objects and schemas for consoles that ask (QMF2.md 4.4).

Decisions where peers differ:

* an object id wins over a class; of a class key only a non-empty package counts, and the hash never does;
* a query for OBJECT_ID is answered like one for OBJECT, with ids and class keys and without values;
* `_select` keeps the wire names it lists; the name of a min/max/average statistic stands for its four values.

Values are read part by part while the answer is sent: each object is consistent in itself, ten thousand are not a
snapshot of one instant, and they never hold up the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from qmf.agent.model import ManagedObject
from qmf.agent.objects import ObjectStore, describe
from qmf.agent.outbox import Outbox, Packer
from qmf.agent.refusal import Refusal
from qmf.agent.tally import Tally
from qmf.errors import ProtocolError
from qmf.protocol import (
    Envelope,
    ErrorCode,
    ObjectData,
    ObjectsResponse,
    QueryRequest,
    SchemaIdsResponse,
    SchemasResponse,
    What,
    compile_predicate,
)
from qmf.schema import ClassKey, ClassSchema, EventSchema, Style

_Fits = Callable[[Mapping[str, object]], bool]

#: Objects examined between two turns of the loop; about 5 ms.
SCAN = 100


class Queries:
    """Answers queries for one agent."""

    def __init__(self, store: ObjectStore, outbox: Outbox, tally: Tally) -> None:
        self._store = store
        self._outbox = outbox
        self._tally = tally

    async def answer(self, request: Envelope, query: QueryRequest) -> None:
        """Answer one query.

        Raises:
            Refusal: the query is invalid.
        """
        self._tally.add("queries")
        try:
            fits = compile_predicate(query.where)
        except ProtocolError as error:
            raise _invalid(f"invalid predicate: {error}") from error
        if query.what is What.SCHEMA_ID:
            keys = [schema.key for schema in self._store.schemas()]
            await self._outbox.answer(request, SchemaIdsResponse(keys))
        elif query.what is What.SCHEMA:
            await self._outbox.answer(request, SchemasResponse(self._find_schemas(query.class_key)))
        else:
            await self._answer_objects(request, query, fits, self._candidates(query))

    def _find_schemas(self, key: ClassKey | None) -> list[ClassSchema | EventSchema]:
        if key is None or not key.name:
            raise _invalid("a query for SCHEMA must name a class in '_schema_id'")
        return [schema for schema in self._store.schemas() if _is_asked_for(schema.key, key)]

    def _candidates(self, query: QueryRequest) -> Iterable[ManagedObject]:
        if query.object_id is not None:
            found = self._store.find(query.object_id)
            return [] if found is None else [found]
        if query.class_key is None:
            raise _invalid(f"a query for {query.what.value} must have an '_object_id' or a '_schema_id'")
        return self._store.of_class(query.class_key.package, query.class_key.name)

    async def _answer_objects(
        self, request: Envelope, query: QueryRequest, fits: _Fits, candidates: Iterable[ManagedObject]
    ) -> None:
        packer = Packer(self._tally)
        part: list[ObjectData] = []
        for number, obj in enumerate(candidates, 1):
            if number % SCAN == 0:
                await asyncio.sleep(0)
            item = self._select(query, fits, obj)
            if item is None:
                continue
            # A part is sent when one more object is known to follow: only then it is surely not the last.
            if len(part) >= packer.room:
                if not await self._send(request, packer, part, more=True):
                    return
                part = []
            part.append(item)
        await self._send(request, packer, part, more=False)

    def _select(self, query: QueryRequest, fits: _Fits, obj: ManagedObject) -> ObjectData | None:
        """What the query wants of an object; None if that is nothing, or the object went while others were sent."""
        if obj._qmf_home is not self._store:
            return None
        if query.what is What.OBJECT_ID and not query.where:
            return describe(obj, {})
        values = obj._qmf_values()
        if not fits(values):
            return None
        if query.what is What.OBJECT_ID:
            values = {}
        elif query.select:
            names = set(_expand(obj, query.select))
            values = {name: value for name, value in values.items() if name in names}
        return describe(obj, values)

    async def _send(self, request: Envelope, packer: Packer, part: Sequence[ObjectData], *, more: bool) -> bool:
        def build(objects: Sequence[ObjectData], partial: bool) -> bytes:
            return self._outbox.encode_answer(request, ObjectsResponse(objects), partial=partial)

        for data, _ in packer.pack(part, build, more=more):
            if not await self._outbox.answer_encoded(data):
                return False
            await asyncio.sleep(0)
        return True


def _expand(obj: ManagedObject, select: Collection[str]) -> Iterator[str]:
    yield from select
    for field in obj._qmf_layout.statistics:
        if field.type.style is Style.MMA and field.name in select:
            yield from (name for name, _ in field.wire)


def _is_asked_for(key: ClassKey, asked: ClassKey) -> bool:
    # Object classes are in lower case on the wire, but a person may have typed the name as in the XML.
    same_name = key.name == asked.name or key.name == asked.name.lower()
    return same_name and asked.package in ("", key.package) and asked.hash in (None, key.hash)


def _invalid(text: str) -> Refusal:
    return Refusal(ErrorCode.UNKNOWN_OBJECT, text)
