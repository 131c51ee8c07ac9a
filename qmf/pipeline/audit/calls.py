"""Calls: user, operation, target and result, from the events that are raised about them.

Requests and responses go between one console and one agent; no third party receives them. These events exist:

- qpidd raises an event for each operation on the broker, by a management call or otherwise, with user and address;
- its access control raises one for each request that a rule with `log` allowed or denied;
- agents of this project raise `methodCalled` for each method call and each change of properties by a console, if they
  are configured to (`qmf.agent.CallAudit`).

Calls that raise no event are not in the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import attrs

from qmf.pipeline.audit.schemas import CALLS, conform
from qmf.pipeline.duckdb_queries import quote_name, text

BROKER, ACL = "org.apache.qpid.broker", "org.apache.qpid.acl"
OK, FAILED = "ok", "failed"


@attrs.frozen(kw_only=True)
class CallEvent:
    """How the events of a class describe a call; the name of an argument is empty where they have no such one."""

    package: str = BROKER  #: and `name`: of the event
    name: str
    operation: str  #: the operation
    target: str = ""  #: name of the argument with the target
    user: str = "user"  #: and `origin`: names of the arguments with the user and the user's address
    origin: str = "rhost"
    failed: bool = False  #: the operation failed
    text: str = ""  #: name of the argument with the reason
    results: str = ""  #: name of the argument with the results


#: Events of Apache's peers, as `schemas/broker.xml` and `schemas/acl.xml` describe them.
CALL_EVENTS = (
    CallEvent(name="clientConnect", operation="connect"),
    CallEvent(name="clientConnectFail", operation="connect", failed=True, text="reason"),
    CallEvent(name="clientDisconnect", operation="disconnect"),
    CallEvent(name="queueDeclare", operation="declare queue", target="qName", results="disp"),
    CallEvent(name="queueDelete", operation="delete queue", target="qName"),
    CallEvent(name="exchangeDeclare", operation="declare exchange", target="exName", results="disp"),
    CallEvent(name="exchangeDelete", operation="delete exchange", target="exName"),
    CallEvent(name="bind", operation="bind", target="qName"),
    CallEvent(name="unbind", operation="unbind", target="qName"),
    CallEvent(name="subscribe", operation="subscribe", target="qName"),
    CallEvent(name="unsubscribe", operation="unsubscribe", target="dest"),
    CallEvent(package=ACL, name="allow", operation="action", target="objectName", user="userId", origin=""),
    CallEvent(package=ACL, name="deny", operation="action", target="objectName", user="userId", origin="", failed=True),
    CallEvent(
        package=ACL, name="connectionDeny", operation="connect", user="userId", origin="clientAddr", failed=True
    ),
    CallEvent(
        package=ACL, name="queueQuotaDeny", operation="declare queue", target="queueName", user="userId", origin="",
        failed=True,
    ),
    CallEvent(package=ACL, name="fileLoaded", operation="load rules", user="userId", origin=""),
    CallEvent(
        package=ACL, name="fileLoadFailed", operation="load rules", user="userId", origin="", failed=True, text="reason"
    ),
)  # fmt: skip


def calls(events: str) -> str:
    """The calls that events describe, as SQL: `CALLS`, a row for each of them; `events` is a part of ``from``."""
    cases: dict[str, Mapping[str, str]] = {f"{item.package}:{item.name}": _foreign(item) for item in CALL_EVENTS}
    cases["qmf.audit:methodCalled"] = _OWN
    cells = [
        f"case source {' '.join(f'when {text(kind)} then {fields[name]}' for kind, fields in cases.items())} end "
        f"as {quote_name(name)}"
        for name in _OWN
    ]
    kinds = ", ".join(text(kind) for kind in cases)
    found = f"(select *, arguments as given, concat(package, ':', class) as source from {events})"
    rows = f"(select event_id, time_ns, agent, source, {', '.join(cells)} from {found} where source in ({kinds}))"
    return conform(rows, CALLS)


def _argument(name: str) -> str:
    return f"json_extract_string(given, '$.{name}')" if name else "null"


def _foreign(event: CallEvent) -> dict[str, str]:
    """The fields of a call that an event of Apache's peers describes."""
    reason = _argument(event.text)
    if not event.text and event.failed and event.package == ACL:
        reason = "'denied'"
    # The event of an access rule names the operation, e.g. "create queue".
    is_action = event.operation == "action"
    return {
        "user": _argument(event.user),
        "origin": _argument(event.origin),
        "operation": f"concat_ws(' ', {_argument('action')}, {_argument('objectType')})"
        if is_action
        else text(event.operation),
        "target": _argument(event.target),
        "arguments": "given",
        "result": text(FAILED if event.failed else OK),
        "code": "null",
        "text": reason,
        "results": _argument(event.results),
        "duration_ns": "null",
    }


#: The fields of a call that an agent of this project describes.
_OWN = MappingProxyType(
    {
        "user": _argument("user"),
        "origin": _argument("replyTo"),
        "operation": _argument("method"),
        "target": _argument("object"),
        "arguments": _argument("arguments"),
        "result": f"if(cast({_argument('code')} as bigint) <> 0, '{FAILED}', '{OK}')",
        "code": f"cast({_argument('code')} as bigint)",
        "text": _argument("text"),
        "results": _argument("results"),
        "duration_ns": f"cast({_argument('duration')} as bigint)",
    }
)
