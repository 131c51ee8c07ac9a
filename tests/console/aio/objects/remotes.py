"""Remote objects for tests."""

from __future__ import annotations

from support.scripted_agent import WIDGET

from qmf.console.aio import (
    ClassFields,
    RemoteObject,
)
from qmf.console.aio.objects.values import with_agent
from qmf.protocol import ObjectData

AGENT = "example.org:widgets:1"


FIELDS = ClassFields(WIDGET)


def remote(data: ObjectData, fields: ClassFields | None = FIELDS, agent: str = AGENT) -> RemoteObject:
    assert data.object_id is not None
    return RemoteObject(data, with_agent(data.object_id, agent), agent, fields, None)
