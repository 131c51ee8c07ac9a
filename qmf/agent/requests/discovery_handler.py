"""Discovery: locate requests, and schema requests of QMFv1.

Consoles of the legacy Python library always query schemas with QMFv1's `S` (QMF2.md 8.4), at the same addresses.
"""

from __future__ import annotations

import logging

from qmf.agent.agent_identity import AgentIdentity
from qmf.agent.clock import Clock
from qmf.agent.metrics import AgentMetrics
from qmf.agent.objects.object_store import ManagedObjectStore
from qmf.agent.request_errors import RequestRefused
from qmf.agent.requests.access import AccessControl, Action
from qmf.agent.sending.message_sender import MessageSender
from qmf.errors import ProtocolError
from qmf.protocol import (
    CommandComplete,
    Envelope,
    Frame,
    LocateRequest,
    LocateResponse,
    SchemaRequest,
    SchemaResponse,
    V1Message,
    What,
    encode,
    matches,
    parse_reply_to,
)
from qmf.protocol.maps import agent_to_map

_log = logging.getLogger("qmf.agent")

#: Characters of a refusal in QMFv1; its length in bytes is sent as one byte.
MAX_V1_TEXT = 60


class DiscoveryHandler:
    """Answers discovery requests to one agent."""

    def __init__(
        self,
        identity: AgentIdentity,
        store: ManagedObjectStore,
        sender: MessageSender,
        access: AccessControl,
        clock: Clock,
        metrics: AgentMetrics,
    ) -> None:
        self._access = access
        self._identity = identity
        self._store = store
        self._sender = sender
        self._clock = clock
        self._metrics = metrics

    async def answer_locate(self, request: Envelope, content: LocateRequest) -> None:
        """Answer if the predicate matches the agent's attributes; ignore invalid ones, as peers do (QMF2.md 4.4.2)."""
        info = self._identity.info(self._clock.time_ns(), self._store.schema_updated)
        try:
            located = not content.where or matches(content.where, agent_to_map(info))
        except ProtocolError as error:
            _log.debug("ignored a locate request: %s", error)
            located = False
        if not located:
            self._metrics.add("ignored")
            return
        self._metrics.add("locates")
        await self._sender.answer(request, LocateResponse(info))

    async def answer_v1(self, message: V1Message) -> bool:
        """Answer the schema requests in a QMFv1 message.

        Returns:
            False if there is none, or no reply-to.
        """
        requests = [frame for frame in message.frames if isinstance(frame, SchemaRequest)]
        if not requests or not message.reply_to:
            return False
        to, subject = parse_reply_to(message.reply_to)
        answer = V1Message(
            frames=[await self._v1_schema(message, frame) for frame in requests],
            to=to,
            subject=subject,
            agent=self._identity.name,
        )
        self._metrics.add("schema_requests")
        await self._sender.answer_encoded(encode(answer))
        return True

    async def _v1_schema(self, message: V1Message, request: SchemaRequest) -> Frame:
        envelope = Envelope(content=LocateRequest(), reply_to=message.reply_to, user_id=message.user_id)
        try:
            await self._access.check(envelope, Action.QUERY, what=What.SCHEMA, class_key=request.key)
        except RequestRefused as refusal:
            return CommandComplete(refusal.code, refusal.text[:MAX_V1_TEXT], request.sequence)
        for schema in self._store.schemas_named(request.key.name):
            # The request does not have the kind of the class.
            if (schema.key.package, schema.key.hash) == (request.key.package, request.key.hash):
                return SchemaResponse(schema, request.sequence)
        return CommandComplete(1, "Class key not found", request.sequence)
