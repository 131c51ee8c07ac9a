"""What a client of STOMP does once it is connected: it sends, subscribes, acknowledges, within transactions or not."""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Callable, Mapping
from typing import Protocol

from qmf.broker.nodes.bindings import BindingRefused, BindingSpec
from qmf.broker.nodes.exchanges import Exchange, TopicExchange
from qmf.broker.nodes.node_declaration import NodeDeclaration, NodeDeclarationError, read_node_declaration
from qmf.broker.nodes.observed_clients import ClientSession, TransactionCounts
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.recorder import NotStored
from qmf.broker.nodes.registry import NameInUse
from qmf.broker.nodes.selectors import compile_selector
from qmf.broker.operations.held_rights import HeldRights
from qmf.broker.operations.operations import Operations
from qmf.broker.operations.policy import OperationRefused
from qmf.broker.operations.principal import BROKER, Principal
from qmf.broker.operations.publishing import publish_message, read_and_resolve, reject
from qmf.broker.protocols.client_connection import AdmittedClient
from qmf.broker.protocols.stomp.destinations import (
    TOPIC,
    TOPIC_EXCHANGE,
    DestinationError,
    StompDestination,
    StompDestinationKind,
    read_destination,
)
from qmf.broker.protocols.stomp.frames import Frame, StompVersion
from qmf.broker.protocols.stomp.mapping import InvalidHeader, encode_stored
from qmf.broker.protocols.stomp.options import StompOptions
from qmf.broker.protocols.stomp.subscription import (
    AckMode,
    FrameSender,
    StompSender,
    StompSubscription,
    StompSubscriptionTerms,
)
from qmf.broker.protocols.stomp.unstored import UnstoredFrames
from qmf.broker.sessions import ClientSessions
from qmf.broker.transactions.coordinator import Coordinator, TransactionFailed
from qmf.errors import DecodeError


class CommandFailed(Exception):
    """A command of a client can't be carried out, and its connection ends; says why."""


class StompConnectionEnd(ClientSession, FrameSender, Protocol):
    """The connection of a client, as this module sees it."""

    version: StompVersion

    def fail(self, reason: str, frame: Frame | None = None) -> None:
        """End the connection with an error."""

    def finish(self) -> None:
        """End the connection in good order."""

    def hold_reading(self) -> None:
        """Too much of what the client has sent has yet to be stored: read nothing from it."""

    def resume_reading(self) -> None:
        """What the client has sent is stored."""


class StompClient(AdmittedClient):
    """A client that is connected."""

    def __init__(
        self,
        connection: StompConnectionEnd,
        principal: Principal,
        operations: Operations,
        clients: ClientSessions,
        options: StompOptions,
        session_id: str,
        client_id: str,
    ) -> None:
        """Make what a client has that was let in.

        Args:
            session_id: that the broker has named to the client.
            client_id: for its durable subscriptions; empty without them.
        """
        self._connection = connection
        self._principal = principal
        self._operations = operations
        self._registry = operations.registry
        self._clients = clients
        self._options = options
        self._publisher = operations.publisher(principal)
        self._coordinator = Coordinator(self._registry)
        self._counts = TransactionCounts()
        self._client_id = client_id
        self._sender = StompSender(session_id, connection.info.container, self._counts)
        #: Of the broker, by the names that the client has chosen.
        self._transactions: dict[str, bytes] = {}
        self._subscriptions: dict[str, StompSubscription] = {}
        self._numbers: dict[int, StompSubscription] = {}
        self._last_number = 0
        #: What was granted, by subscription, to be asked for when there are other rules.
        self._held: HeldRights[str] = HeldRights(operations)
        #: Queues that end with the connection: its own by the names it has for them, and those of subscriptions.
        self._temporary: dict[str, Queue] = {}
        self._own: dict[str, Queue] = {}
        #: Receipts in the order of their frames, and whether what they confirm is done.
        self._receipts: deque[tuple[str, list[bool]]] = deque()
        self._disconnecting = self._left = False
        self._unstored = UnstoredFrames(
            self._registry.recorder,
            options.max_frame,
            hold=connection.hold_reading,
            release=connection.resume_reading,
            fail=self._on_not_stored,
        )
        self._registry.observer.on_attached(connection, self._sender)

    def on_frame(self, frame: Frame) -> None:
        """The client has sent something.

        Raises:
            CommandFailed: it cannot be done.
        """
        handle = _COMMANDS.get(frame.command)
        if handle is None or (frame.command == "NACK" and self._connection.version is StompVersion.V1_0):
            raise CommandFailed(f"unknown command {frame.command[:20]}")
        recorder = self._registry.recorder
        receipt = frame.headers.get("receipt")
        if recorder is not None and receipt is not None:
            self._unstored.close()
            recorder.flush()
        try:
            follow = handle(self, frame)
        except OperationRefused as error:
            raise CommandFailed(str(error)) from error
        except (DestinationError, InvalidHeader) as error:
            raise CommandFailed(str(error)) from error
        except TransactionFailed as error:
            raise CommandFailed(error.refusal.description) from error
        if receipt is not None and frame.command != "COMMIT":  # that waits for its own end
            self._confirm(receipt, follow, len(frame.body))
        elif follow is not None:
            follow()

    def end_turn(self) -> None:
        """What came together was handled."""
        self._unstored.close()

    def dispatch(self) -> None:
        for subscription in list(self._subscriptions.values()):
            if subscription.queue is not None and len(subscription.queue.contents):
                subscription.queue.delivery.dispatch()

    def missing_right(self) -> str:
        return self._held.first_missing(self._principal)

    def loses(self, node: Queue | Exchange) -> bool:
        return any(each.queue is node for each in self._subscriptions.values())

    def leave(self) -> None:
        if self._left:
            return
        self._left = True
        self._coordinator.roll_back(list(self._transactions.values()))
        for id in list(self._subscriptions):
            self._end_subscription(id)
        self._registry.observer.on_detached(self._connection, self._sender)
        for queue in self._temporary.values():
            if self._registry.queue(queue.name) is queue:
                self._operations.delete_owned(BROKER, queue)

    # Receipts

    def _confirm(self, receipt: str, follow: Callable[[], None] | None, size: int) -> None:
        """Send a receipt when what the frame has caused is stored, and what came before as well; then go on."""
        send = self._await_receipt(receipt)
        recorder = self._registry.recorder

        def finish(error: NotStored | None = None) -> None:
            if error is not None:
                self._on_not_stored(error)
                return
            send()
            if follow is not None and not self._left:
                follow()

        def on_stored(error: NotStored | None) -> None:
            self._unstored.remove(1, size)
            finish(error)

        if recorder is not None and recorder.close_unit(on_stored):
            self._unstored.add(1, size)
        else:
            finish()

    def _on_not_stored(self, error: NotStored) -> None:
        if not self._left:
            self._connection.fail(f"cannot store: {error.reason}")

    def _await_receipt(self, receipt: str) -> Callable[[], None]:
        """A place in the order of receipts; calling the result says that it may be sent."""
        state = [False]
        self._receipts.append((receipt, state))

        def send() -> None:
            state[0] = True
            while not self._left and self._receipts and self._receipts[0][1][0]:
                self._connection.send_frame("RECEIPT", [("receipt-id", self._receipts.popleft()[0])])
            self._finish_if_due()

        return send

    def _finish_if_due(self) -> None:
        """After DISCONNECT the connection ends, once all receipts are sent."""
        if self._disconnecting and not self._receipts and not self._left:
            self._connection.finish()

    # Sending

    def _send(self, frame: Frame) -> None:
        self._sender.transfers += 1
        destination = read_destination(_required_header(frame, "destination"), frame.headers, "destination-type")
        node, key = self._node(destination)
        reply_to = frame.headers.get("reply-to")
        data = encode_stored(frame, key, None if reply_to is None else self._reply_address(reply_to))
        info = self._connection.info
        try:
            message, _ = read_and_resolve(self._registry, data, node, user=info.proven_user)
        except DecodeError as error:
            raise CommandFailed(reject(self._registry, error).description) from error
        message.origin = info
        if (name := frame.headers.get("transaction")) is not None:
            transaction = self._coordinator.find(self._transaction(name))
            self._coordinator.add(transaction, self._publisher.admit(node, message))
            return
        if "receipt" not in frame.headers:
            self._unstored.open(len(frame.body))
        refusal = publish_message(self._publisher, message, node)
        if refusal is not None:
            raise CommandFailed(refusal.description)

    def _node(self, destination: StompDestination) -> tuple[Queue | Exchange, str]:
        """What a destination names, and the key of messages there. A queue that is not there is created."""
        name = destination.name
        if destination.kind is StompDestinationKind.TEMPORARY:
            return self._temporary_queue(name), ""
        if destination.kind is StompDestinationKind.EXCHANGE:
            exchange = self._operations.resolve(self._principal, name, ("topic",))
            if not isinstance(exchange, Exchange):
                raise CommandFailed(f"no exchange {name!r}")
            return exchange, destination.key
        capabilities = ("queue",) if destination.kind is StompDestinationKind.QUEUE else ()
        found = self._operations.resolve(self._principal, name, capabilities)
        if found is None:
            found = self._operations.create_by_policy(self._principal, name)
        if found is None:
            durable = self._registry.recorder is not None
            found = self._create(name, {"durable": durable})
        if not isinstance(found, Queue | Exchange):
            raise CommandFailed(f"nothing is sent to, or received from, {name!r}")
        return found, destination.key

    def _create(self, name: str, properties: Mapping[str, object]) -> Queue:
        created = self._operations.create(self._principal, name, self._declaration(properties))
        assert isinstance(created, Queue)
        return created

    def _declaration(self, properties: Mapping[str, object]) -> NodeDeclaration:
        return read_node_declaration(("queue",), properties, limits=self._registry.limits)

    def _temporary_queue(self, name: str) -> Queue:
        queue = self._temporary.get(name)
        if queue is None or self._registry.queue(queue.name) is not queue:
            queue = self._temporary[name] = self._create(f"stomp.{uuid.uuid4()}.{name}", {})
        return queue

    def _reply_address(self, text: str) -> str:
        """The header `reply-to` as clients of AMQP use it."""
        destination = read_destination(text, {}, "")
        if destination.kind is StompDestinationKind.TEMPORARY:
            return self._temporary_queue(destination.name).name
        if destination.kind is StompDestinationKind.EXCHANGE and destination.key:
            return f"{destination.name}/{destination.key}"
        return destination.name

    # Subscriptions

    def _subscribe(self, frame: Frame) -> Callable[[], None]:
        headers = frame.headers
        text = _required_header(frame, "destination")
        id = headers.get("id") or ("" if self._connection.version is not StompVersion.V1_0 else text)
        if not id:
            raise CommandFailed("SUBSCRIBE needs the header id")
        if id in self._subscriptions:
            raise CommandFailed(f"there is a subscription with the id {id[:100]!r}")
        if len(self._subscriptions) >= self._options.max_subscriptions:
            raise CommandFailed(f"a connection has at most {self._options.max_subscriptions} subscriptions")
        terms = self._terms(id, text, headers)
        destination = read_destination(text, headers, "subscription-type")
        with self._held.record_grants(id):
            node, key = self._node(destination)
            if isinstance(node, Exchange):
                queue = self._topic_queue(node, key, headers)
                if destination.kind is not StompDestinationKind.ADDRESS:
                    terms = self._on_topic(terms, node, text)
            else:
                queue = node
            grant = self._operations.consume(self._principal, queue)
        self._last_number += 1
        subscription = StompSubscription(self._connection, queue, terms, self._last_number)
        self._subscriptions[id] = self._numbers[self._last_number] = subscription
        grant.begin(subscription)
        self._clients.link_attached(self._connection, queue)
        self._registry.observer.on_attached(self._connection, subscription)
        return queue.delivery.dispatch

    def _terms(self, id: str, text: str, headers: Mapping[str, str]) -> StompSubscriptionTerms:
        mode = headers.get("ack", AckMode.AUTO.value)
        if mode not in {each.value for each in AckMode}:
            raise CommandFailed(f"ack is auto, client or client-individual, not {mode[:20]!r}")
        prefetch = headers.get("prefetch-count") or headers.get("activemq.prefetchSize") or ""
        if prefetch and not (prefetch.isascii() and prefetch.isdigit() and 0 < int(prefetch) < 1 << 31):
            raise CommandFailed(f"prefetch-count is a number from 1 on, not {prefetch[:20]!r}")
        selector = headers.get("selector")
        try:
            compiled = compile_selector(selector) if selector else None
        except ValueError as error:
            raise CommandFailed(f"selector: {error}") from error
        return StompSubscriptionTerms(
            id=id,
            destination=text,
            prefix="",
            mode=AckMode(mode),
            prefetch=int(prefetch) if prefetch else self._options.prefetch,
            selector=compiled,
            with_type=True,
        )

    def _on_topic(self, terms: StompSubscriptionTerms, exchange: Exchange, text: str) -> StompSubscriptionTerms:
        """Terms of a subscription to an exchange: the destination of its messages has their key."""
        if text.startswith(TOPIC):
            prefix = TOPIC
        else:
            prefix = "" if exchange.name == TOPIC_EXCHANGE and "/" not in text else f"/exchange/{exchange.name}/"
        return StompSubscriptionTerms(
            terms.id, terms.destination, prefix or TOPIC, terms.mode, terms.prefetch, terms.selector, False
        )

    def _topic_queue(self, exchange: Exchange, key: str, headers: Mapping[str, str]) -> Queue:
        """The queue of a subscription to an exchange, which ends with it unless it is durable."""
        name = self._durable_name(headers)
        spec = BindingSpec(key or ("#" if isinstance(exchange, TopicExchange) else ""))
        try:
            if name is None:
                name = f"stomp.{uuid.uuid4()}"
                settings = self._declaration({}).queue
                queue = self._operations.subscribe(self._principal, exchange, name, settings, spec).queue
                self._own[headers.get("id") or headers["destination"]] = queue
                return queue
            found = self._registry.queue(name)
            if found is not None and exchange.binding(found, spec.key) is None:
                self._operations.delete(self._principal, found)  # it is about something else now
                found = None
            if found is not None:
                self._operations.ask_subscription(self._principal, exchange, name, found.settings, spec.key)
                return found
            durable = self._registry.recorder is not None
            settings = self._declaration({"durable": durable}).queue
            return self._operations.subscribe(self._principal, exchange, name, settings, spec).queue
        except (NameInUse, BindingRefused, NodeDeclarationError) as error:
            raise CommandFailed(f"the queue of the subscription cannot be used: {error}") from error

    def _durable_name(self, headers: Mapping[str, str]) -> str | None:
        name = headers.get("durable-subscription-name")
        if not name:
            return None
        if not self._client_id:
            raise CommandFailed("a durable subscription needs the header client-id of CONNECT")
        return f"{self._client_id}.{name}"

    def _unsubscribe(self, frame: Frame) -> None:
        headers = frame.headers
        id = headers.get("id") or headers.get("destination") or ""
        name = self._durable_name(headers)
        if id in self._subscriptions:
            self._end_subscription(id)
        elif name is None:
            raise CommandFailed(f"there is no subscription {id[:100]!r}")
        if name is not None and (queue := self._registry.queue(name)) is not None:
            self._operations.delete(self._principal, queue)

    def _end_subscription(self, id: str) -> None:
        subscription = self._subscriptions.pop(id)
        self._numbers = {number: each for number, each in self._numbers.items() if each is not subscription}
        self._held.forget(id)
        queue = subscription.queue
        assert queue is not None
        self._registry.observer.on_detached(self._connection, subscription)
        subscription.end()
        self._clients.link_detached(self._connection, queue)
        own = self._own.pop(id, None)
        if own is not None and self._registry.queue(own.name) is own:
            self._operations.delete_owned(BROKER, own)

    # Acknowledgements

    def _ack(self, frame: Frame) -> None:
        self._acknowledge(frame, accepted=True)

    def _nack(self, frame: Frame) -> None:
        self._acknowledge(frame, accepted=False)

    def _acknowledge(self, frame: Frame, *, accepted: bool) -> None:
        id = _required_header(frame, "id" if self._connection.version is StompVersion.V1_2 else "message-id")
        number = id.partition("-")[0]
        subscription = self._numbers.get(int(number)) if number.isascii() and number.isdigit() else None
        if subscription is None or not subscription.owns(id):
            raise CommandFailed(f"no message {id[:100]!r} waits for an acknowledgement")
        name = frame.headers.get("transaction")
        if name is None:
            subscription.settle([*subscription.take(id).values()], accepted=accepted)
            return
        transaction = self._coordinator.find(self._transaction(name))
        transaction.acquisitions.append(subscription.hold(subscription.take(id), accepted=accepted))

    # Transactions

    def _begin(self, frame: Frame) -> None:
        name = _required_header(frame, "transaction")
        if name in self._transactions:
            raise CommandFailed(f"transaction {name[:100]!r} has begun before")
        self._transactions[name] = self._coordinator.declare(self._counts)

    def _commit(self, frame: Frame) -> None:
        receipt = frame.headers.get("receipt")
        send = None if receipt is None else self._await_receipt(receipt)
        self._end_transaction(frame, send, fail=False)

    def _abort(self, frame: Frame) -> None:
        self._end_transaction(frame, None, fail=True)

    def _end_transaction(self, frame: Frame, send: Callable[[], None] | None, *, fail: bool) -> None:
        name = _required_header(frame, "transaction")
        transaction = self._transaction(name)
        del self._transactions[name]

        def on_done(refusal: object) -> None:
            if refusal is not None:
                self._connection.fail(getattr(refusal, "description", str(refusal)), frame)
            elif send is not None:
                send()

        self._coordinator.discharge(transaction, self._counts, on_done, fail=fail)
        self.dispatch()

    def _transaction(self, name: str) -> bytes:
        found = self._transactions.get(name)
        if found is None:
            raise CommandFailed(f"no transaction {name[:100]!r} has begun")
        return found

    # The end

    def _disconnect(self, _: Frame) -> Callable[[], None]:
        self._disconnecting = True
        return self._finish_if_due


def _required_header(frame: Frame, name: str) -> str:
    value = frame.headers.get(name)
    if not value:
        raise CommandFailed(f"{frame.command} needs the header {name}")
    return value


_COMMANDS: Mapping[str, Callable[[StompClient, Frame], Callable[[], None] | None]] = {
    "SEND": StompClient._send,
    "SUBSCRIBE": StompClient._subscribe,
    "UNSUBSCRIBE": StompClient._unsubscribe,
    "ACK": StompClient._ack,
    "NACK": StompClient._nack,
    "BEGIN": StompClient._begin,
    "COMMIT": StompClient._commit,
    "ABORT": StompClient._abort,
    "DISCONNECT": StompClient._disconnect,
}
