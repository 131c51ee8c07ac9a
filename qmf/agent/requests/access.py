"""Access control: a function of the application that decides on requests of consoles.

The user id of a request is set by the broker. If the broker does not check it, consoles can set any.
"""

from __future__ import annotations

import enum
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping

import attrs

from qmf.agent.request_errors import RequestRefused
from qmf.protocol import Envelope, ErrorCode, ObjectId, What
from qmf.schema import ClassKey

_log = logging.getLogger("qmf.agent")


class Action(enum.Enum):
    """An action of a console."""

    QUERY = "query"
    METHOD = "method"
    SET = "set"
    SUBSCRIBE = "subscribe"


@attrs.frozen(kw_only=True)
class AccessRequest:
    """A request on which access control decides.

    Attributes:
        action: the requested action.
        user_id: the console's user, as set by the broker, or None without any.
        reply_to: address of the answer, or None.
        what: subject of a query (objects, their ids, or schemas); None for other actions.
        class_key: class of the objects, methods or schemas; None for all schemas, and for unknown objects. The class
            key of a query may lack package and hash.
        object_id: the id of a single object, or None.
        method: name of the method, or None.
        arguments: checked inputs of the method, or new values of the properties, by schema name.
        on_behalf_of: the user whom the console calls for, as the console says; None for its own user. Believe it only
            of consoles (`user_id`) that you trust.
    """

    action: Action
    user_id: str | None
    reply_to: str | None
    what: What | None = None
    class_key: ClassKey | None = None
    object_id: ObjectId | None = None
    method: str | None = None
    arguments: Mapping[str, object] = attrs.field(factory=dict)
    on_behalf_of: str | None = None


#: True allows, False refuses; a string refuses with that reason.
Decision = bool | str
Access = Callable[[AccessRequest], Decision | Awaitable[Decision]]


class AccessControl:
    """Calls the application's function; without one every request is allowed."""

    def __init__(self, access: Access | None) -> None:
        self._access = access

    @property
    def is_active(self) -> bool:
        """Whether there is a function."""
        return self._access is not None

    async def check(
        self,
        request: Envelope,
        action: Action,
        *,
        what: What | None = None,
        class_key: ClassKey | None = None,
        object_id: ObjectId | None = None,
        method: str | None = None,
        arguments: Mapping[str, object] | None = None,
    ) -> None:
        """Return if a request is allowed.

        Raises:
            RequestRefused: it is refused, with the reason of the application; also if its function fails.
        """
        if self._access is None:
            return
        access_request = AccessRequest(
            action=action,
            user_id=request.user_id,
            reply_to=request.reply_to,
            what=what,
            class_key=class_key,
            object_id=object_id,
            method=method,
            arguments=arguments or {},
            on_behalf_of=getattr(request.content, "on_behalf_of", None),
        )
        try:
            answer = self._access(access_request)
            decision = await answer if inspect.isawaitable(answer) else answer
        except Exception as error:
            _log.exception("access control failed, so the request is refused")
            raise RequestRefused(ErrorCode.FORBIDDEN, "access control failed") from error
        if decision is not True:
            reason = decision if isinstance(decision, str) and decision else f"{action.value}: not allowed"
            raise RequestRefused(ErrorCode.FORBIDDEN, reason)
