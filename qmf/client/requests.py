"""Requests to the agent of a broker over a connection of `qmf.messaging`, one at a time, each with its answer."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Sequence
from typing import Any

from qmf._marks import receiving_link_name, sending_link_name
from qmf.errors import IncompleteAnswer, ProtocolError, RemoteError, RequestTimeout
from qmf.messaging import Connection, Empty, Message

#: Name and routing key of the agent inside a broker.
BROKER = "broker"
REQUESTS = f"qmf.default.direct/{BROKER}"
_QUERY = "_query_request"
#: Properties of messages.
_PROPERTY, _PARTIAL, _SEQUENCE = "qmf.opcode", "partial", "qmf.sequence"
#: Beginning of the names of queue objects, and the statistics of a queue that count dropped messages.
_QUEUES = "org.apache.qpid.broker:queue"
_DISCARDS = ("discardsRing", "discardsOverflow", "discardsTtl")


class RequestChannel:
    """A session with a sender to the agent and a receiver of its answers. Any thread may use it."""

    def __init__(self, connection: Connection, timeout: float) -> None:
        """Open the session and its links.

        Args:
            connection: an open one; the channel does not close it.
            timeout: seconds to wait for an answer.

        Raises:
            MessagingError: the broker has no exchanges for management.
        """
        self.connection = connection
        self.timeout = timeout
        self._lock = threading.Lock()
        self._number = 0
        #: Messages that the queue of the answers is known to have dropped.
        self._dropped = 0
        self._session = connection.session()
        try:
            answers = f"qmf.default.topic/direct.{uuid.uuid4()}"
            self._reply_to = f"{answers};{{node:{{type:topic}}}}"
            # The names mark the links as those of a console, even if the connection is an application's.
            link = receiving_link_name()
            options = f"node:{{type:topic}}, link:{{name:'{link}'}}"
            self._answers = self._session.receiver(f"{answers};{{{options}}}", capacity=10)
            self._requests = self._session.sender(f"{REQUESTS};{{link:{{name:'{sending_link_name()}'}}}}")
        except BaseException:
            self._session.close()
            raise
        #: As brokers name the queue of a subscription.
        self._queue = f"{connection.options.container}_{link}"

    def close(self) -> None:
        """Close the session; the connection stays open."""
        self._session.close()

    def request(self, opcode: str, content: dict[str, Any], timeout: float | None = None) -> list[Message]:
        """Send a request.

        Args:
            opcode: such as ``_query_request``.
            content: of the message.
            timeout: seconds until the last part of the answer; None for those of the channel.

        Returns:
            the answer, which may have several parts.

        Raises:
            RemoteError: the agent refused the request.
            RequestTimeout: there was no whole answer in time.
            IncompleteAnswer: parts of the answer are missing.
            MessagingError: the connection or the session failed.
        """
        seconds = self.timeout if timeout is None else timeout
        with self._lock:
            parts = self._exchange(opcode, content, seconds)
            self._check_numbers(parts)
            if len(parts) > 1 and _SEQUENCE not in parts[0].properties:
                self._check_discards(seconds)
        expected = opcode.replace("request", "response")
        for part in parts:
            part.content = with_texts(part.content)
            if (given := part.properties.get(_PROPERTY)) == "_exception":
                raise _refusal(part.content)
            if given != expected:
                raise ProtocolError(f"the agent of the broker answered {opcode} with {given!r}")
        return parts

    def _exchange(self, opcode: str, content: dict[str, Any], seconds: float) -> list[Message]:
        """Send a request, and collect the parts of the answer that come."""
        deadline = time.monotonic() + seconds
        self._number += 1
        number = str(self._number)
        self._requests.send(self._message(opcode, content, number), timeout=seconds)
        parts = [self._next(number, deadline, seconds)]
        while _PARTIAL in parts[-1].properties:
            parts.append(self._next(number, deadline, seconds))
        return parts

    def _check_numbers(self, parts: Sequence[Message]) -> None:
        """Agents of this project number the parts of an answer, if there are several."""
        numbers = [part.properties.get(_SEQUENCE) for part in parts]
        expected: list[object] = [None] if len(parts) == 1 else [*range(1, len(parts) + 1)]
        if numbers != expected and any(number is not None for number in numbers):
            last = numbers[-1]
            missing = f"{last - len(parts)} of {last}" if isinstance(last, int) and last > len(parts) else "some"
            raise IncompleteAnswer(f"{missing} parts of the answer of the broker are missing; ask again")

    def _check_discards(self, seconds: float) -> None:
        """qpidd does not number the parts: whether its queue for the answers has dropped any is seen at the queue."""
        query = {"_what": "OBJECT", "_object_id": {"_object_name": f"{_QUEUES}:{self._queue}"}}
        content = with_texts(self._exchange(_QUERY, query, seconds)[0].content)
        found = content[0] if isinstance(content, list) and content else None
        values = found.get("_values") if isinstance(found, dict) else None
        if not isinstance(values, dict):
            return  # another broker, which has no such objects: nothing can be known
        dropped = sum(values[name] for name in _DISCARDS if isinstance(values.get(name), int))
        before, self._dropped = self._dropped, dropped
        if dropped > before:
            raise IncompleteAnswer(
                f"the broker dropped {dropped - before} parts of its answer, for which its queue had no room"
            )

    def _message(self, opcode: str, content: dict[str, Any], number: str) -> Message:
        properties = {"method": "request", _PROPERTY: opcode, "x-amqp-0-10.app-id": "qmf2"}
        return Message(content, reply_to=self._reply_to, correlation_id=number, properties=properties, subject=BROKER)

    def _next(self, number: str, deadline: float, seconds: float) -> Message:
        """The next message with this number; answers to earlier requests, which came too late, are dropped."""
        while True:
            try:
                message = self._answers.fetch(max(0.0, deadline - time.monotonic()))
            except Empty:
                raise RequestTimeout("a request", BROKER, seconds) from None
            self._session.acknowledge(sync=False)
            if message.correlation_id == number:
                return message


def with_texts(value: Any) -> Any:
    """A value with texts instead of bytes, as which qpidd sends texts; bytes that are no UTF-8 stay."""
    match value:
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError:
                return value
        case dict():
            return {name: with_texts(item) for name, item in value.items()}
        case list():
            return [with_texts(item) for item in value]
        case _:
            return value


def _refusal(content: object) -> RemoteError:
    values = content.get("_values") if isinstance(content, dict) else None
    if not isinstance(values, dict):
        return RemoteError(f"the broker sent an error without values: {content!r}")
    code, text = values.pop("error_code", None), values.pop("error_text", "")
    return RemoteError(str(text), code if isinstance(code, int) else None, values=values)
