"""A policy for tests, and what the nodes of a broker are."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.operations.policy import Action, KeyCheck, ObjectType, Operation
from qmf.broker.operations.principal import LOCAL, Principal

REASON = "no rule allows it"


@attrs.define(eq=False)
class Rules:
    """A `Policy` that refuses what a function says, and remembers what it was asked."""

    refuses: Callable[[Principal, Operation], bool] = lambda *_: False
    has_key_rules: bool = False
    asked: list[tuple[Principal, Operation]] = attrs.field(factory=list)

    def key_check(self, principal: Principal, exchange: str) -> KeyCheck | None:
        return None

    def refusal(self, principal: Principal, operation: Operation) -> str:
        self.asked.append((principal, operation))
        return REASON if self.refuses(principal, operation) else ""

    def questions(self) -> list[str]:
        """What was asked since the last call."""
        asked, self.asked = self.asked, []
        return [str(operation) for _, operation in asked]


def refusing(action: Action, object_type: ObjectType, name: str | None = None) -> Rules:
    """Refuses an operation to all but the broker and its own agent."""

    def refuses(principal: Principal, operation: Operation) -> bool:
        return (
            principal.protocol not in ("", LOCAL)
            and (operation.action, operation.object_type) == (action, object_type)
            and name in (None, operation.name)
        )

    return Rules(refuses)


def state(registry: NodeRegistry) -> tuple[Mapping[str, object], *tuple[object, ...]]:
    """All that operations change, but for what belongs to the broker's own agent."""
    return (
        {
            queue.name: (
                queue.contents.depth.count,
                len(queue.delivery.consumers),
                len(queue.delivery.browsers),
                queue.redirected,
            )
            for queue in registry.queues
        },
        {exchange.name: [(b.queue.name, b.spec) for b in exchange.all_bindings()] for exchange in registry.exchanges},
        [topic.name for topic in registry.topics.topics],
        [policy.pattern for policy in registry.topics.policies],
        registry.timestamps,
    )
