"""How consoles find the agent and learn its classes the old way: locate requests, and schema requests of QMFv1.

Consoles of the legacy Python library always ask for schemas with QMFv1's `S` (QMF2.md 8.4), at the same addresses.
"""

from __future__ import annotations

import logging

from qmf.agent.clock import Clock
from qmf.agent.identity import Identity
from qmf.agent.metrics import Tally
from qmf.agent.objects.object_store import ObjectStore
from qmf.agent.requests.access import Action, Gate
from qmf.agent.requests.request_errors import Refusal
from qmf.agent.sending.message_sender import Outbox
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


class Discovery:
    """Answers for one agent."""

    def __init__(
        self, identity: Identity, store: ObjectStore, outbox: Outbox, gate: Gate, clock: Clock, tally: Tally
    ) -> None:
        self._gate = gate
        self._identity = identity
        self._store = store
        self._outbox = outbox
        self._clock = clock
        self._tally = tally

    async def answer_locate(self, request: Envelope, content: LocateRequest) -> None:
        """Answer if the predicate fits our attributes; to an invalid one no peer answers (QMF2.md 4.4.2)."""
        info = self._identity.info(self._clock.time_ns(), self._store.schema_updated)
        try:
            wanted = not content.where or matches(content.where, agent_to_map(info))
        except ProtocolError as error:
            _log.debug("ignored a locate request: %s", error)
            wanted = False
        if not wanted:
            self._tally.add("ignored")
            return
        self._tally.add("locates")
        await self._outbox.answer(request, LocateResponse(info))

    async def answer_v1(self, message: V1Message) -> bool:
        """Answer the schema requests in a QMFv1 message.

        Returns:
            False if there was none, or nowhere to answer.
        """
        asked = [frame for frame in message.frames if isinstance(frame, SchemaRequest)]
        if not asked or not message.reply_to:
            return False
        to, subject = parse_reply_to(message.reply_to)
        answer = V1Message(
            frames=[await self._v1_schema(message, frame) for frame in asked],
            to=to,
            subject=subject,
            agent=self._identity.name,
        )
        self._tally.add("schema_requests")
        await self._outbox.answer_encoded(encode(answer))
        return True

    async def _v1_schema(self, message: V1Message, request: SchemaRequest) -> Frame:
        asker = Envelope(content=LocateRequest(), reply_to=message.reply_to, user_id=message.user_id)
        try:
            await self._gate.check(asker, Action.QUERY, what=What.SCHEMA, class_key=request.key)
        except Refusal as refusal:
            return CommandComplete(refusal.code, refusal.text[:MAX_V1_TEXT], request.sequence)
        for schema in self._store.schemas():
            key = schema.key
            # The request does not say of which kind the class is.
            if (key.package, key.name, key.hash) == (request.key.package, request.key.name, request.key.hash):
                return SchemaResponse(schema, request.sequence)
        return CommandComplete(1, "Class key not found", request.sequence)
