"""The broker's own agent: what the broker holds as objects and events of `schemas/broker.xml`.

Loaded when a broker is told to have it. The agent talks through the broker's exchanges like any other, on a bus inside
the process. That bus's queues and bindings are shown, since they hold and route messages; it is no client.
"""

from __future__ import annotations

import logging
import platform

from qmf.agent import Agent
from qmf.broker.local_bus import LocalBus
from qmf.broker.management.events import EVENTS, EventPublisher
from qmf.broker.management.objects import CLASSES, ObjectPublisher
from qmf.broker.management.sampling import Sampler, SamplingClock
from qmf.broker.management.values import clip
from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.observer import BrokerObserver, BrokerObservers

log = logging.getLogger("qmf.broker")

VENDOR, PRODUCT = "qmf", "broker"

#: Bytes of the agent's instance name: routing keys hold it, and end at 255 bytes.
MAX_INSTANCE = 200


class ManagementAgent:
    """The agent of one broker, from `start` to `close`, on the broker's loop."""

    def __init__(
        self, registry: NodeRegistry, *, name: str | None, host: str, port: int, backlog: int, interval: float
    ) -> None:
        """Describe what there is, and watch what comes. Must be made before the first client has connected.

        Args:
            registry: of the broker.
            name: of the broker, which tells its agent apart; None for the machine's with the port.
            host, port, backlog: of the listening socket.
            interval: seconds between publications.

        Raises:
            CallerError: the interval is not positive.
        """
        self._registry = registry
        self._sampler = Sampler()
        self._agent = Agent(
            LocalBus(registry, f"{VENDOR}-{PRODUCT}-management"),
            vendor=VENDOR,
            product=PRODUCT,
            instance=clip(name or f"{platform.node() or host}:{port}", MAX_INSTANCE),
            interval=interval,
            access=self._sampler.access,
            clock=SamplingClock(self._sampler),
        )
        self._agent.register(*CLASSES, *EVENTS)
        listening = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        keeper = ObjectPublisher(self._agent, self._sampler, registry, listening)
        keeper.describe(port=port, backlog=backlog, interval=interval)
        registry.observer = BrokerObservers(keeper, EventPublisher(self._agent, registry, listening))

    async def start(self) -> None:
        """Tell consoles that it is there."""
        await self._agent.start()
        log.info("managed by agent %s", self._agent.name)

    async def close(self) -> None:
        """Say goodbye to consoles; nothing is watched any more. A second call does nothing."""
        self._registry.observer = BrokerObserver()
        self._sampler.sample()
        await self._agent.close()
