"""What raises events with the broker's agent, whatever clients have put into them."""

from __future__ import annotations

import logging

from qmf.agent import Agent, Event
from qmf.broker.nodes.observer import BrokerObserver
from qmf.errors import CallerError

log = logging.getLogger("qmf.broker")


class RaisingObserver(BrokerObserver):
    """An observer of the broker that raises events of what it is notified of."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def _raise(self, event: Event) -> None:
        try:
            self._agent.raise_event(event)
        except CallerError as error:
            # Clients choose some of the arguments; that the schema does not allow them must not harm the clients.
            log.warning("an event is missing in the management: %s", error)
