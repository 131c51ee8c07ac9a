"""Messages that are pulled from a transmission queue of another broker, and go to the nodes of their addresses here."""

from __future__ import annotations

import time

from qmf.broker.nodes.message import Message, read_message
from qmf.broker.nodes.node_declaration import NodeDeclaration, NodeDeclarationError, read_node_declaration
from qmf.broker.nodes.registry import NameInUse, NoSuchExchange
from qmf.broker.nodes.relay_addresses import AT, RELAY_ENDED, RELAY_REASON, RELAY_TO, RELAY_USER, relay_annotations
from qmf.broker.nodes.sections import with_sender
from qmf.broker.operations.operations import Operations
from qmf.broker.operations.policy import OperationRefused
from qmf.broker.operations.principal import Principal
from qmf.errors import DecodeError


class DeadLettersMissing(Exception):
    """The queue for dead letters is missing, and cannot be created; says why."""


class AddressedMessages:
    """Gives messages the address by which they are published here, or that of the queue for dead letters."""

    def __init__(self, operations: Operations, principal: Principal, dead_letters: str) -> None:
        """Make what readdresses messages, and the queue for dead letters where that is missing.

        Args:
            principal: on whose behalf they are published.
            dead_letters: name of the queue for those that have no node here, or may not be published.

        Raises:
            DeadLettersMissing: there is no such queue, and it cannot be created.
            OperationRefused: the policy refuses it.
        """
        self.publisher = operations.publisher(principal, relay=True)
        self._operations = operations
        self._registry = operations.registry
        self._dead_letters = dead_letters
        operations.ask_relay(principal)
        if self._registry.queue(dead_letters) is None:
            try:
                wanted = {"durable": self._registry.recorder is not None}
                queue = read_node_declaration(("queue",), wanted, limits=self._registry.limits).queue
                operations.create(principal, dead_letters, NodeDeclaration(queue=queue))
            except (NodeDeclarationError, NameInUse, NoSuchExchange) as error:
                raise DeadLettersMissing(f"queue {dead_letters!r} cannot be created: {error}") from error

    def readdress(self, data: bytes, message_format: int = 0) -> bytes:
        """A message as it is published: to the name in its address, and by the user who has sent it.

        Raises:
            DecodeError: it is malformed, or in a format that cannot be read.
        """
        message = read_message(data, self._registry.clock(), message_format)
        if message.opaque:
            raise DecodeError("a message in a format that this broker cannot read has no address")
        found = relay_annotations(message)
        address = str(found.get(RELAY_TO) or message.to or "")
        name = address
        if RELAY_TO in found:
            name = address.rpartition(AT)[0]
            message = read_message(with_sender(data, str(found.get(RELAY_USER, "")), name), self._registry.clock())
        reason = self._refusal(message, name)
        if not reason:
            return message.data
        ended = message.with_annotation(RELAY_REASON, reason).with_annotation(RELAY_ENDED, round(time.time() * 1000))
        return with_sender(ended.data, (message.user_id or b"").decode("utf-8", "replace"), self._dead_letters)

    def _refusal(self, message: Message, name: str) -> str:
        """Why a message cannot be published; empty if it can."""
        if not name:
            return "the message has no address"
        node = self._registry.relay_target(name)
        if node is None:
            return self._registry.missing(name)
        try:
            self.publisher.admit(node, message)
        except OperationRefused as error:
            return str(error)
        return ""
