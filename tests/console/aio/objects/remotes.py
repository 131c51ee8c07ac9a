"""Remote objects for tests."""

from __future__ import annotations

from support.scripted_agent import WIDGET

from qmf.console.aio import (
    ClassView,
    RemoteObject,
)
from qmf.console.aio.objects.class_view import with_agent
from qmf.protocol import ObjectData

AGENT = "example.org:widgets:1"


VIEW = ClassView(WIDGET)


def remote(data: ObjectData, view: ClassView | None = VIEW) -> RemoteObject:
    assert data.object_id is not None
    return RemoteObject(data, with_agent(data.object_id, AGENT), AGENT, view, None)
