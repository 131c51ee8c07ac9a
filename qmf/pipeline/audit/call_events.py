"""How events describe calls: the classes of Apache's peers, and that of this project. Knows no engine."""

from __future__ import annotations

import attrs

BROKER, ACL, AUDIT = "org.apache.qpid.broker", "org.apache.qpid.acl", "qmf.audit"
METHOD_CALLED = "methodCalled"


@attrs.frozen(kw_only=True)
class CallEvent:
    """How the events of a class describe a call. An empty name of an argument means that there is none.

    Attributes:
        package, name: of the event.
        operation: the operation.
        target: name of the argument with the target.
        user, origin: names of the arguments with the user and the user's address.
        failed: the operation failed.
        text: name of the argument with the reason.
        results: name of the argument with the results.
    """

    package: str = BROKER
    name: str
    operation: str
    target: str = ""
    user: str = "user"
    origin: str = "rhost"
    failed: bool = False
    text: str = ""
    results: str = ""


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
