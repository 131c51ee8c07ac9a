"""The broker's own agent: its queues, exchanges, clients and so on as objects and events of `schemas/broker.xml`.

Imported only by a broker with management. The agent communicates over the broker's exchanges like every agent, on a
`LocalBus`. That bus is not shown as a connection, but its queues and bindings are: they store and route messages.
"""

from __future__ import annotations

import logging
import platform
from collections.abc import Awaitable

from qmf.agent import AccessRequest, Action, Agent
from qmf.broker.local_bus import LocalBus
from qmf.broker.management.callers import current_principal, decide
from qmf.broker.management.deferral import ObjectDeferral
from qmf.broker.management.events import EVENTS, OWN_EVENTS, EventPublisher
from qmf.broker.management.forwarding_objects import ForwardingPublisher
from qmf.broker.management.objects import CLASSES, ObjectPublisher
from qmf.broker.management.sampling import SamplingClock, StatisticsSampler
from qmf.broker.management.setup import BrokerSetup
from qmf.broker.management.values import clip
from qmf.broker.nodes.exchanges import TopicExchange
from qmf.broker.nodes.observer import BrokerObserver, BrokerObservers
from qmf.broker.operations.operations import Operations
from qmf.broker.process_control import ProcessControl
from qmf.protocol import data_key, topic_exchange
from qmf.schema import ClassKey

log = logging.getLogger("qmf.broker")

VENDOR, PRODUCT, DOMAIN = "qmf", "broker", "default"

#: Second name of the agent of every broker: programs that manage the broker they are connected to need no other.
ALIAS = "broker"

#: Bytes of the agent's instance name: it is part of routing keys, which have at most 255 bytes.
MAX_INSTANCE = 200


class ManagementAgent:
    """The agent of one broker, from `start` to `close`, on the broker's loop."""

    def __init__(
        self,
        operations: Operations,
        *,
        name: str | None,
        setup: BrokerSetup,
        process: ProcessControl | None,
    ) -> None:
        """Add objects for what exists, and observe the broker from now on. To be created before the first client
        connects.

        Args:
            name: of the broker, the instance in its agent's name; None for the machine's name and the port.
            process: what consoles may change in the process of the broker; None for nothing.

        Raises:
            CallerError: the interval is not positive.
        """
        self._operations = operations
        self._registry = registry = operations.registry
        self._sampler = StatisticsSampler()
        self._publishes = setup.publishes
        clock = SamplingClock(self._sampler)
        machine = platform.node()
        self._agent = Agent(
            LocalBus(operations, f"{VENDOR}-{PRODUCT}-management"),
            vendor=VENDOR,
            product=PRODUCT,
            instance=clip(name or (f"{machine}:{setup.port}" if machine else setup.listening), MAX_INSTANCE),
            aliases=(ALIAS,),
            domain=DOMAIN,
            interval=setup.interval,
            publish_data=setup.publishes,
            access=self._access,
            clock=clock,
        )
        self._agent.register(*CLASSES, *EVENTS, *(OWN_EVENTS if setup.revokes else ()))
        if setup.access is not None:
            # Imported here, so that a broker without access control does not load it.
            from qmf.broker.management import access_object, acl_object

            self._agent.register(*access_object.CLASSES, *acl_object.CLASSES, *acl_object.EVENTS)
            setup.access.watchers.append(acl_object.AclEvents(self._agent))
        if setup.certificate is not None:
            # Imported here, so that a broker without TLS does not load it.
            from qmf.broker.management import certificate_object

            self._agent.register(*certificate_object.CLASSES, *certificate_object.EVENTS)
        objects = ObjectPublisher(self._agent, self._sampler, operations, setup.listening)
        objects.publish_existing(process, setup)
        self._deferral = self._defer(objects)
        clock.prepare = self._deferral.on_interval
        forwarding = ForwardingPublisher(self._agent, self._sampler, operations)
        self._before = registry.observer
        events = EventPublisher(self._agent, registry, setup.listening)
        sessions = self._publish_sessions(setup, objects)
        registry.observer = BrokerObservers(self._before, objects, events, forwarding, *sessions)

    def _defer(self, objects: ObjectPublisher) -> ObjectDeferral:
        return ObjectDeferral(
            {cls._qmf_schema_.key: deferred for cls, deferred in objects.deferred.items()},
            heard=self._is_heard,
            followed=lambda: self._agent.statistics.active_subscriptions > 0,
        )

    def _publish_sessions(self, setup: BrokerSetup, objects: ObjectPublisher) -> list[BrokerObserver]:
        if setup.mqtt_sessions is None:
            return []
        # Imported here, so that a broker without MQTT does not load it.
        from qmf.broker.management import mqtt_objects

        self._agent.register(*mqtt_objects.CLASSES, *mqtt_objects.EVENTS)
        publisher = mqtt_objects.MqttSessionPublisher(self._agent, self._sampler, objects, setup.listening)
        for session in setup.mqtt_sessions:
            publisher.on_session_begun(session)
        return [publisher]

    async def start(self) -> None:
        """Announce the agent to consoles."""
        await self._agent.start()
        log.info("managed by agent %s", self._agent.name)

    async def close(self) -> None:
        """Sign off from consoles, and stop observing the broker. A second call does nothing."""
        self._registry.observer = self._before
        await self._deferral.close()
        self._sampler.sample()
        await self._agent.close()

    def _is_heard(self, key: ClassKey) -> bool:
        """Whether somebody listens to publications of the objects of a class."""
        topic = self._registry.exchange(topic_exchange(DOMAIN))
        return self._publishes and isinstance(topic, TopicExchange) and topic.is_heard(data_key(key, self._agent.info))

    def _access(self, request: AccessRequest) -> bool | str | Awaitable[bool | str]:
        """The agent's access hook."""
        decision = decide(self._operations, request)
        if request.action in (Action.METHOD, Action.SET):
            client = current_principal(request.user_id).client
            assert client is not None
            self._registry.observer.on_called(
                client.info,
                request.method or "set properties",
                "" if request.object_id is None else request.object_id.object_name,
                "" if decision is True else str(decision),
            )
        name = "" if request.class_key is None else request.class_key.name
        if decision is True and self._deferral.is_large(name):
            return self._allow_later(request, name)
        self._sampler.on_request(request)
        return decision

    async def _allow_later(self, request: AccessRequest, name: str) -> bool:
        """As `_access` of an allowed request, when the objects that it is about have been made."""
        await self._deferral.make_all(name)
        self._sampler.on_request(request)
        return True
