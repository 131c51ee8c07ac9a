"""The dispatcher of requests: decodes messages of consoles and passes each to its handler.

Each request becomes a task. Its message is done when the answer is sent, so the bus's prefetch limits the number of
requests at a time. A request without reply-to is ignored, as all peers do (QMF2.md 7.3). A message that cannot be
decoded is counted and skipped; if its reply-to and opcode are readable, the sender gets an exception with the reason.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from qmf.agent.metrics import AgentMetrics
from qmf.agent.request_errors import RequestRefused, one_line
from qmf.agent.requests.discovery_handler import DiscoveryHandler
from qmf.agent.requests.method_handler import MethodHandler
from qmf.agent.requests.query_handler import QueryHandler
from qmf.agent.requests.subscription_handler import SubscriptionHandler
from qmf.agent.sending.message_sender import MessageSender
from qmf.bus.base import ReceivedMessage
from qmf.errors import DecodeError, ProtocolError
from qmf.protocol import (
    Content,
    ContentError,
    Envelope,
    ErrorCode,
    ExceptionResponse,
    LocateRequest,
    MethodRequest,
    ObjectDecoder,
    QueryRequest,
    SubscribeCancel,
    SubscribeRefresh,
    SubscribeRequest,
    V1Message,
    decode,
)

_log = logging.getLogger("qmf.agent")

#: Seconds that cancelled calls have for their answers.
CLOSE_GRACE = 1.0

_Handler = Callable[[Envelope, Any], Awaitable[None]]


class RequestDispatcher:
    """Dispatches the requests to one agent; belongs to the event loop's thread."""

    def __init__(
        self,
        discovery: DiscoveryHandler,
        queries: QueryHandler,
        methods: MethodHandler,
        subscriptions: SubscriptionHandler,
        sender: MessageSender,
        metrics: AgentMetrics,
        *,
        debug: bool,
    ) -> None:
        """Set up; `debug`: add tracebacks to exceptions."""
        self._debug = debug
        self._methods = methods
        self._discovery = discovery
        self._sender = sender
        self._metrics = metrics
        self._tasks: set[asyncio.Task[None]] = set()
        #: Remembers sections of messages: those of one console's requests are mostly the same.
        self._decoder = ObjectDecoder()
        self._handlers: dict[type[Content], _Handler] = {
            LocateRequest: discovery.answer_locate,
            QueryRequest: queries.answer,
            MethodRequest: methods.answer,
            SubscribeRequest: subscriptions.answer,
            SubscribeRefresh: subscriptions.refresh,
            SubscribeCancel: subscriptions.cancel,
        }

    def deliver(self, received: ReceivedMessage) -> None:
        """Handle a message from the bus."""
        self._metrics.add("messages_in")
        try:
            message = decode(received.data, self._decoder)
        except (DecodeError, ProtocolError) as error:
            work = self._on_malformed(error)
        else:
            work = self._v1(message) if isinstance(message, V1Message) else self._v2(message, _expiry(message))
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)

        def on_finished(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            received.settle()
            if not task.cancelled() and (error := task.exception()) is not None:
                _log.error("a request could not be handled", exc_info=error)

        task.add_done_callback(on_finished)

    async def close(self) -> None:
        """Cancel all requests. Callers of methods get an error; answers to queries end without one."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE_GRACE)
        self._methods.close()

    async def _v2(self, request: Envelope, expires: float | None) -> None:
        handler = self._handlers.get(type(request.content))
        if handler is None or not (request.reply_to or isinstance(request.content, _ONE_WAY)):
            self._metrics.add("ignored")
            return
        try:
            if isinstance(request.content, MethodRequest):
                await self._methods.answer(request, request.content, expires)
            else:
                await handler(request, request.content)
        except RequestRefused as refusal:
            _log.debug("refused a request: %s", refusal.text)
            await self._sender.answer(request, refusal.response(debug=self._debug))
        except Exception as error:  # noqa: BLE001  # the console must not wait in vain
            _log.exception("a bug: %s could not be answered", type(request.content).__name__)
            failure = RequestRefused(ErrorCode.EXCEPTION, one_line(error), error)
            await self._sender.answer(request, failure.response(debug=self._debug))

    async def _v1(self, message: V1Message) -> None:
        if not await self._discovery.answer_v1(message):
            self._metrics.add("ignored")

    async def _on_malformed(self, error: DecodeError | ProtocolError) -> None:
        self._metrics.add("malformed")
        # The kind must not have parts that a peer can choose, or it could fill log and memory.
        self._metrics.warn_once(type(error).__name__, "skipped a malformed message: %s", error)
        code = _CODES.get(error.opcode) if isinstance(error, ContentError) else None
        if code is not None and isinstance(error, ContentError) and error.reply_to:
            content = ExceptionResponse(text=one_line(error), code=code)
            request = Envelope(content=content, reply_to=error.reply_to, correlation_id=error.correlation_id)
            await self._sender.answer(request, content)


def _expiry(request: Envelope) -> float | None:
    """The time of the loop until which a message that arrives now is worth handling; None without a limit."""
    return None if request.ttl is None else asyncio.get_running_loop().time() + request.ttl


#: Codes for requests with invalid content (QMF2.md 4.6). A locate request is never refused: other agents get it, too.
_CODES = {
    "_query_request": ErrorCode.UNKNOWN_OBJECT,
    "_method_request": ErrorCode.INVALID_PARAMETER,
    "_subscribe_request": ErrorCode.INVALID_PARAMETER,
}

#: Requests without an answer.
_ONE_WAY = (SubscribeRefresh, SubscribeCancel)
