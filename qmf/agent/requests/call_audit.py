"""Telling the bus who called what: an event for each method call and each setting of properties, where that is wanted.

A call goes from one console to one agent; nobody else sees it. An agent made with a `CallAudit` raises `methodCalled`
when a call is over, whatever came of it, before the caller gets the answer. It is an event like others: numbered, kept
while there is no connection, and held back by the agent's `event_limit`; an agent whose calls shall all be told is made
without a limit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from uuid import UUID

import attrs

from qmf.agent.clock import Clock
from qmf.codec import typed
from qmf.protocol import EventData, MethodRequest
from qmf.schema import TYPES, Argument, EventSchema, Severity

#: The event. Its hash is that of the same class in XML.
METHOD_CALLED = EventSchema(
    package="qmf.audit",
    name="methodCalled",
    severity=Severity.NOTICE,
    hash=UUID("80e35201-2fa3-650b-6e15-1e2d2f1993ed"),
    desc="Somebody called a method of this agent, or set properties",
    arguments=(
        Argument(name="user", type=TYPES["lstr"], desc="Who, as the broker vouches for; empty if it doesn't"),
        Argument(name="replyTo", type=TYPES["lstr"], desc="Where the answer goes"),
        Argument(name="object", type=TYPES["objId"], desc="The object that was meant; absent without one"),
        Argument(name="method", type=TYPES["lstr"], desc="Name of the method, or _set_properties"),
        Argument(name="arguments", type=TYPES["map"], desc="What was handed over; empty if that isn't told"),
        Argument(name="code", type=TYPES["uint32"], desc="0 if it went well, or the code of the exception"),
        Argument(name="text", type=TYPES["lstr"], desc="What the exception says; empty if it went well"),
        Argument(name="results", type=TYPES["map"], desc="What came back; empty if that isn't told"),
        Argument(
            name="duration", type=TYPES["deltaTime"], unit="nanosecond", desc="Time that the call took"
        ),
    ),
)  # fmt: skip


@attrs.frozen(kw_only=True)
class CallAudit:
    """What is told of calls.

    Attributes:
        arguments: also what was handed over and what came back. Whoever listens to the bus reads it, secrets included.
    """

    arguments: bool = False


@attrs.frozen
class CallAuditor:
    """Raises the events of one agent.

    Attributes:
        audit: what is told.
        put: where events go.
        clock: of the agent.
    """

    audit: CallAudit
    put: Callable[[EventData], None]
    clock: Clock

    def report(
        self,
        user: str | None,
        reply_to: str | None,
        call: MethodRequest,
        begin: float,
        *,
        code: int = 0,
        text: str = "",
        results: Mapping[str, object] | None = None,
    ) -> None:
        """Tell of a call that is over.

        Args:
            user, reply_to: who called.
            call: what was called.
            begin: when it came, by the clock's `monotonic`.
            code, text: of the exception.
            results: what came back.
        """
        told = self.audit.arguments
        values: dict[str, object] = {
            "user": user or "",
            "replyTo": reply_to or "",
            "method": call.method,
            "arguments": dict(call.arguments) if told else {},
            "code": code,
            "text": text,
            "results": dict(results or {}) if told else {},
            "duration": max(0, round((self.clock.monotonic() - begin) * 1e9)),
        }
        typed_values = {
            item.name: typed(item.type, values[item.name]) for item in METHOD_CALLED.arguments if item.name in values
        }
        if call.object_id is not None:
            typed_values["object"] = call.object_id
        self.put(
            EventData(
                values=typed_values,
                class_key=METHOD_CALLED.key,
                timestamp=self.clock.time_ns(),
                severity=int(Severity.NOTICE),
            )
        )
