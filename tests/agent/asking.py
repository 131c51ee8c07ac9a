"""What tests of queries share: asking, and what is in the answers."""

from __future__ import annotations

from collections.abc import Sequence

from support.fake_bus import FakeBus

from qmf.protocol import (
    Envelope,
    ExceptionResponse,
    MethodRequest,
    ObjectData,
    ObjectId,
    ObjectsIndication,
    ObjectsResponse,
    QueryRequest,
    What,
)


async def ask(bus: FakeBus, *, user_id: str | None = None, **query: object) -> list[Envelope]:
    """Query; all parts of the answer."""
    request = QueryRequest(**{"what": What.OBJECT, **query})  # type: ignore[arg-type]
    return await bus.request(request, user_id=user_id)


async def call(bus: FakeBus, object_id: ObjectId | None, method: str, **arguments: object) -> Envelope:
    """Call a method; its answer."""
    (answer,) = await bus.request(MethodRequest(method=method, object_id=object_id, arguments=arguments))
    return answer


def objects(messages: Sequence[Envelope]) -> list[ObjectData]:
    """The objects in answers or indications."""
    found: list[ObjectData] = []
    for message in messages:
        assert isinstance(message.content, (ObjectsResponse, ObjectsIndication)), message
        found += message.content.objects
    return found


def names(messages: Sequence[Envelope]) -> list[str]:
    """The last part of their object names."""
    return [item.object_id.object_name.rpartition(":")[2] for item in objects(messages) if item.object_id]


def refusal(answer: Envelope) -> tuple[int | None, str]:
    """Code and text of an exception."""
    assert isinstance(answer.content, ExceptionResponse), answer
    return answer.content.code, answer.content.text
