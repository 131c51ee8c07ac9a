"""The audit of method calls: an optional event for each method call and each change of properties by a console.

A call goes from one console to one agent and is not visible to others. An agent with a `CallAudit` raises
`methodCalled` when a call has ended, with or without success, before the caller gets the answer. It is an event like
others: numbered, kept while there is no connection, and suppressed beyond the agent's `event_limit`; to record all
calls, make the agent without a limit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from uuid import UUID

import attrs

from qmf.agent.clock import Clock
from qmf.codec import wrap_value
from qmf.protocol import EventData, MethodRequest
from qmf.schema import TYPES, Argument, EventSchema, Severity

#: The event. Its hash is that of the same class in XML.
METHOD_CALLED = EventSchema(
    package="qmf.audit",
    name="methodCalled",
    severity=Severity.NOTICE,
    hash=UUID("74c5721c-c869-3da4-aa40-a5f9d48fafa8"),
    desc="A console called a method of this agent, or set properties",
    arguments=(
        Argument(
            name="user", type=TYPES["lstr"], desc="User id of the console, as set by the broker; empty if unknown"
        ),
        Argument(
            name="onBehalfOf",
            type=TYPES["lstr"],
            desc="User whom the console called for, as the console says; empty for its own user",
        ),
        Argument(name="replyTo", type=TYPES["lstr"], desc="Address of the answer"),
        Argument(name="object", type=TYPES["objId"], desc="The called object; absent without one"),
        Argument(name="method", type=TYPES["lstr"], desc="Name of the method, or _set_properties"),
        Argument(name="arguments", type=TYPES["map"], desc="Inputs; empty if the audit leaves them out"),
        Argument(name="code", type=TYPES["uint32"], desc="0 for success, or the code of the exception"),
        Argument(name="text", type=TYPES["lstr"], desc="Text of the exception; empty for success"),
        Argument(name="results", type=TYPES["map"], desc="Outputs; empty if the audit leaves them out"),
        Argument(name="duration", type=TYPES["deltaTime"], unit="nanosecond", desc="Duration of the call"),
    ),
)


@attrs.frozen(kw_only=True)
class CallAudit:
    """Options of the audit.

    Attributes:
        arguments: include inputs and outputs. Every console can read them, secrets included.
    """

    arguments: bool = False


@attrs.frozen
class CallAuditor:
    """Raises the audit events of one agent.

    Attributes:
        audit: the options.
        put: adds an event to the agent's queue.
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
        """Report a call that has ended.

        Args:
            user, reply_to: of the caller.
            begin: when it arrived, by the clock's `monotonic`.
            code, text: of the exception; 0 and empty for success.
            results: the outputs.
        """
        complete = self.audit.arguments
        values: dict[str, object] = {
            "user": user or "",
            "onBehalfOf": call.on_behalf_of or "",
            "replyTo": reply_to or "",
            "method": call.method,
            "arguments": dict(call.arguments) if complete else {},
            "code": code,
            "text": text,
            "results": dict(results or {}) if complete else {},
            "duration": max(0, round((self.clock.monotonic() - begin) * 1e9)),
        }
        typed_values = {
            item.name: wrap_value(item.type, values[item.name])
            for item in METHOD_CALLED.arguments
            if item.name in values
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
