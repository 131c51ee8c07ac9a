"""Publishing on behalf of one principal. What was granted is kept: a message seldom costs a question to the policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Protocol
from weakref import WeakSet

from qmf.broker.nodes.exchanges import DefaultExchange
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.nodes.router import Node, RoutingResult
from qmf.broker.operations.grants import Publication
from qmf.broker.operations.policy import Action, KeyCheck, ObjectType, Operation, OperationRefused, Policy
from qmf.broker.operations.principal import BROKER, Principal

#: Stands for no node, where None is that of an address that names none.
_NONE = object()


def _no_key(_: str) -> bool:
    return False


_NO_CHECK = KeyCheck(_no_key)


class PublishingOperations(Protocol):
    """What a publisher needs of `Operations`."""

    registry: NodeRegistry
    policy: Policy

    def ask(self, principal: Principal, operation: Operation) -> None:
        """Ask the policy."""

    def ask_address(self, principal: Principal, address: str) -> None:
        """Ask for an address that is looked up."""

    def ask_access(self, principal: Principal, node: Node) -> None:
        """Ask for a node."""


class Publisher:
    """Publishes what one link, or one bus inside the process, sends."""

    def __init__(self, operations: PublishingOperations, principal: Principal, *, relay: bool = False) -> None:
        """Make a publisher, which has asked for no right yet.

        Args:
            relay: the messages name their nodes themselves, so that their addresses are asked for as well.
        """
        self.registry = operations.registry
        self._operations = operations
        self._principal = principal
        self._relay = relay
        #: What has decided on all that is kept below.
        self._policy = operations.policy
        self._by_key = self._policy.has_key_rules
        self._granted: WeakSet[Node] = WeakSet()
        #: The node of the last message, which is most often that of the next one.
        self._last: object = _NONE
        #: Each message to that node is asked for with its key, unless this says that it need not be.
        self._asks_keys = False
        self._known: Set[str] = frozenset()
        self._beginnings: tuple[str, ...] = ()
        self._is_free: Callable[[str], bool] = _no_key

    def grant(self, node: Node) -> None:
        """Ask for the right to publish to a node, unless it was granted before.

        Raises:
            OperationRefused: the policy refuses it.
        """
        if self._operations.policy is not self._policy:
            self._follow_policy()
        if node not in self._granted:
            self._ask_node(node)

    def publish(self, node: Node | None, message: Message) -> RoutingResult:
        """As `Router.publish`.

        Raises:
            OperationRefused: the policy refuses it; nobody has the message.
        """
        if (
            node is not self._last
            or self._operations.policy is not self._policy
            or (
                self._asks_keys
                and (key := message.subject) not in self._known
                and not (key.startswith(self._beginnings) and "$" not in key)
                and not self._is_free(key)
            )
        ):
            self._check(node, message)
        return self.registry.publish(node, message)

    def publish_all(self, node: Node | None, messages: Sequence[Message]) -> Mapping[int, str]:
        """As `Router.publish_all`; the messages have the same subject unless `node` is a queue.

        Raises:
            OperationRefused: the policy refuses it; nobody has any of the messages.
        """
        if (
            node is not self._last
            or self._operations.policy is not self._policy
            or (
                self._asks_keys
                and (key := messages[0].subject) not in self._known
                and not (key.startswith(self._beginnings) and "$" not in key)
                and not self._is_free(key)
            )
        ):
            self._check(node, messages[0])
        return self.registry.publish_all(node, messages)

    def admit(self, node: Node | None, message: Message) -> Publication:
        """The right to publish a message later.

        Raises:
            OperationRefused: the policy refuses it.
        """
        self._check(node, message)
        return Publication(self.registry, node, message)

    def _check(self, node: Node | None, message: Message) -> None:
        if node is None:  # who may not use the address does not learn that either
            self._ask_address(message)
            return
        if self._operations.policy is not self._policy:
            self._follow_policy()
        if node not in self._granted:
            self._ask_address(message)
            self._ask_node(node)
        if isinstance(node, DefaultExchange):
            queue = self.registry.queue(message.subject)
            if queue is not None:
                self._refuse_reserved(queue)
        if node is not self._last:
            # By the key, a message to the default exchange may go to a queue that is reserved.
            self._last = _NONE if isinstance(node, DefaultExchange) else node
            self._asks_keys = self._by_key and not isinstance(node, Queue)
            if self._asks_keys:
                check = self._policy.key_check(self._principal, node.name) or _NO_CHECK
                self._known, self._beginnings, self._is_free = check.known, check.beginnings, check.allows
        if self._asks_keys and not self._is_free(message.subject):
            self._ask(node.name, {"routingkey": message.subject})

    def _follow_policy(self) -> None:
        """Forget what another policy has granted."""
        self._policy = self._operations.policy
        self._by_key = self._policy.has_key_rules
        self._last = _NONE
        self._granted.clear()

    def _ask_node(self, node: Node) -> None:
        self._operations.ask_access(self._principal, node)
        if isinstance(node, Queue):
            self._refuse_reserved(node)
            self._ask("", {"routingkey": node.name})
        elif not self._by_key:
            self._ask(node.name, {})
        self._granted.add(node)

    def _refuse_reserved(self, queue: Queue) -> None:
        if queue.reserved and self._principal != BROKER:
            operation = Operation(Action.PUBLISH, ObjectType.QUEUE, queue.name)
            raise OperationRefused(self._principal, operation, f"only {queue.reserved} puts messages into it")

    def _ask_address(self, message: Message) -> None:
        if self._relay and message.to is not None:
            self._operations.ask_address(self._principal, message.to)

    def _ask(self, exchange: str, properties: Mapping[str, object]) -> None:
        self._operations.ask(self._principal, Operation(Action.PUBLISH, ObjectType.EXCHANGE, exchange, properties))
