"""Who may send to which queue or topic, and consume from which: by the rules of the server."""

from __future__ import annotations

from starlette.requests import HTTPConnection

from qmf.web.access.access import WebAccess
from qmf.web.messages.destinations import Destination, DestinationKind
from qmf.web.messages.requests import read_destination
from qmf.web.problems import Problem
from qmf.web.scopes import Caller, Scope


def may_push(access: WebAccess, owner: Caller | None, destination: Destination) -> bool:
    """Whether the owner of a push registration may still have the messages; without one, who wrote its file may."""
    if owner is None:
        return True
    topic = destination.kind is DestinationKind.TOPIC
    return access.may_still(owner, Scope.MESSAGES) and access.rules.may_consume(owner, destination.name, topic=topic)


class DestinationRights:
    """A dependency of all routes of the queues, or of the topics: the caller may do there what the path says.

    It is checked before anybody looks whether there is such a queue or topic, so that names cannot be probed.
    """

    def __init__(self, kind: DestinationKind, access: WebAccess) -> None:
        self._kind = kind
        self._access = access

    async def __call__(self, connection: HTTPConnection) -> None:
        """Check the caller of a request.

        Raises:
            Problem: 401, unknown; 403, the scope is missing, or the rules deny it.
        """
        caller = self._access.check(connection, Scope.MESSAGES)
        if self._access.rules.current is None:
            return
        destination = read_destination(self._kind, str(connection.path_params["name"]))
        rules, topic = self._access.rules, self._kind is DestinationKind.TOPIC
        may_send = rules.may_send(caller, destination.name, topic=topic)
        may_consume = rules.may_consume(caller, destination.name, topic=topic)
        # The part behind the name: nothing, "create", or where consumers are made.
        part = connection.url.path.split("/", 4)[3:4]
        if not part:
            done, allowed = "use", may_send or may_consume
        elif part[0] == "create":
            done, allowed = "send to", may_send
        else:
            done, allowed = "consume from", may_consume
        if not allowed:
            reason = f"{caller.client} may not {done} {destination}: the rules deny it"
            self._access.audit.log_refused(
                "request", name=caller.name, address=caller.address, reason=reason, path=connection.url.path
            )
            raise Problem(403, reason)
