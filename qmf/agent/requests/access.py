"""Who may do what: the application's hook that decides on requests of consoles.

A user id is what the broker vouches for. One that does not check it lets consoles write there what they like.
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
    """What a console wants to do."""

    QUERY = "query"
    METHOD = "method"
    SET = "set"
    SUBSCRIBE = "subscribe"


@attrs.frozen(kw_only=True)
class AccessRequest:
    """What is to be decided.

    Attributes:
        action: what the console wants to do.
        user_id: who it is, as the broker vouches for, or None where it says nothing.
        reply_to: where the answer goes, or None.
        what: objects, their ids, or schemas: what is queried; None for other actions.
        class_key: class of the objects, methods or schemas that are meant; None for all schemas, and for an object that
            does not exist. What was named in a query may lack package and hash.
        object_id: the one object that is meant, or None.
        method: name of the method to call, or None.
        arguments: checked inputs of the method, or new values of the properties, by schema name.
    """

    action: Action
    user_id: str | None
    reply_to: str | None
    what: What | None = None
    class_key: ClassKey | None = None
    object_id: ObjectId | None = None
    method: str | None = None
    arguments: Mapping[str, object] = attrs.field(factory=dict)


#: True allows, False refuses; a text refuses with that reason.
Decision = bool | str
Access = Callable[[AccessRequest], Decision | Awaitable[Decision]]


class AccessControl:
    """Asks the hook; without one everybody may do everything."""

    def __init__(self, access: Access | None) -> None:
        self._access = access

    @property
    def asks(self) -> bool:
        """Whether there is a hook."""
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
        """Return if a console may do what it asks.

        Raises:
            RequestRefused: it may not, with the hook's reason. A hook that fails refuses.
        """
        if self._access is None:
            return
        asked = AccessRequest(
            action=action,
            user_id=request.user_id,
            reply_to=request.reply_to,
            what=what,
            class_key=class_key,
            object_id=object_id,
            method=method,
            arguments=arguments or {},
        )
        try:
            answer = self._access(asked)
            decision = await answer if inspect.isawaitable(answer) else answer
        except Exception as error:
            _log.exception("the access hook failed, so the request is refused")
            raise RequestRefused(ErrorCode.FORBIDDEN, "whether this is allowed cannot be decided") from error
        if decision is not True:
            reason = decision if isinstance(decision, str) and decision else f"{action.value}: not allowed"
            raise RequestRefused(ErrorCode.FORBIDDEN, reason)
