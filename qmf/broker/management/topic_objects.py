"""Topics and policies as managed objects."""

from __future__ import annotations

from qmf.broker.management.sampling import SampledObject
from qmf.broker.management.values import simple_map, sstr
from qmf.broker.nodes.topics import NodePolicy, Topic
from qmf.models.broker import agent as model


class ManagedTopic(model.Topic, SampledObject):
    """A topic."""

    def __init__(self, topic: Topic, exchange: model.Exchange | None) -> None:
        super().__init__(
            name=sstr(topic.name),
            exchangeRef=exchange,
            durable=topic.durable,
            properties=simple_map(topic.properties),
        )


class ManagedQueuePolicy(model.QueuePolicy, SampledObject):
    """A policy that creates queues."""

    def __init__(self, policy: NodePolicy) -> None:
        super().__init__(name=sstr(policy.pattern), properties=simple_map(policy.properties))


class ManagedTopicPolicy(model.TopicPolicy, SampledObject):
    """A policy that creates topics."""

    def __init__(self, policy: NodePolicy) -> None:
        super().__init__(name=sstr(policy.pattern), properties=simple_map(policy.properties))
