"""Brokers and agents in the published API. What they do is done by their `BrokerConnection`."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from qmf.console import aio
from qmf.console.identity import BrokerURL
from qmf.console.proxies import Object
from qmf.errors import CallerError

if TYPE_CHECKING:
    from qmf.console.broker_connection import BrokerConnection
    from qmf.console.session import Session

T = TypeVar("T")


class Agent:
    """An agent, as reached through one broker.

    Attributes:
        session, broker: how it is reached.
        brokerBank: always 1.
        agentBank: its name; ``0`` for the agent of the connected broker.
        label: ``QMFv2 Agent``, or ``BrokerAgent`` for the agent of the connected broker.
        epoch: number of its start, 0 where it doesn't say.
        isV2: always True.
    """

    isV2 = True
    brokerBank = 1

    def __init__(self, link: BrokerConnection, core: aio.Agent) -> None:
        self.link = link
        self.core = core

    @property
    def session(self) -> Session:
        """The session that it was found by."""
        return self.link.session

    @property
    def broker(self) -> Broker:
        """The broker through which it is reached."""
        return self.link.broker

    @property
    def agentBank(self) -> str:
        """Its name; ``0`` for the agent of the connected broker."""
        return "0" if self.core.is_broker else self.core.name

    @property
    def label(self) -> str:
        """A word for what it is."""
        return "BrokerAgent" if self.core.is_broker else "QMFv2 Agent"

    @property
    def epoch(self) -> int:
        """Number of its start, 0 where it doesn't say."""
        return self.core.epoch

    def getBroker(self) -> Broker:
        """The broker through which it is reached."""
        return self.link.broker

    def getBrokerBank(self) -> int:
        """Always 1."""
        return self.brokerBank

    def getAgentBank(self) -> str:
        """Its name; ``0`` for the agent of the connected broker."""
        return self.agentBank

    def getV2RoutingKey(self) -> str:
        """Where it takes requests."""
        return "broker" if self.core.is_broker else self.core.name

    def getObjects(self, notifiable: Callable[..., object] | None = None, **kwargs: Any) -> list[Object]:
        """Objects of this agent; arguments as of `Session.getObjects`.

        Args:
            notifiable: called from the session's callback thread with `qmf_object=` for each object and then with
                `qmf_complete=True`, or with `qmf_exception=` and the reason. This call then returns an empty list
                at once.
        """
        return self.run(self.link.get_objects(self, notifiable, kwargs))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run work of the core and wait for it."""
        return self.link.run(work)

    def __repr__(self) -> str:
        return f"Agent(v2) at bank {self.brokerBank}.{self.agentBank} ({self.label})"


class Broker:
    """A connection to a broker, made by `Session.addBroker`.

    Attributes:
        session: the session.
        host, port: where it is.
        authUser: who we are there, or None.
    """

    SYNC_TIME = 60

    def __init__(self, link: BrokerConnection, url: BrokerURL) -> None:
        self.link = link
        self.host = url.host
        self.port = url.port
        self.authUser = url.authName
        self._url = url

    @property
    def session(self) -> Session:
        """The session that it belongs to."""
        return self.link.session

    @property
    def error(self) -> str | None:
        """See `getError`."""
        return self.link.error

    def isConnected(self) -> bool:
        """True while the connection is there."""
        return self.link.connected

    def getError(self) -> str | None:
        """Why the last attempt to connect failed, or the connection was lost; None while it is there."""
        return self.link.error

    def getBrokerId(self) -> UUID | None:
        """The id of the broker; None before `Console.brokerInfo`, and for brokers without QMF."""
        return self.link.broker_id

    def getBrokerBank(self) -> int:
        """Always 1."""
        return 1

    def getAgent(self, brokerBank: int, agentBank: int | str) -> Agent | None:
        """The agent with that bank, or None.

        Args:
            brokerBank: 1.
            agentBank: the agent's name, or 0 for the agent of the broker itself.
        """
        return self.link.agent(brokerBank, str(agentBank))

    def getBrokerAgent(self) -> Agent | None:
        """The agent of the broker itself; None when it has none."""
        return self.getAgent(1, 0)

    def getSessionId(self) -> str:
        """The key under which this connection gets its answers."""
        return self.link.session_id

    def getAgents(self) -> list[Agent]:
        """The agents reached through it."""
        return self.link.agents()

    def getAmqpSession(self) -> Any:
        """Refused: there is no AMQP 0-10 session here.

        Raises:
            CallerError: always.
        """
        raise CallerError("getAmqpSession: the connection speaks AMQP 1.0, which has no 0-10 session")

    def getUrl(self) -> BrokerURL:
        """Host and port."""
        return self._url

    def getFullUrl(self, noAuthIfGuestDefault: bool = True) -> str:
        """The URL with scheme, user and password.

        Args:
            noAuthIfGuestDefault: leave user and password out when both are ``guest``.
        """
        name, word = self._url.authName, self._url.authPass
        default = noAuthIfGuestDefault and name == word == "guest"
        login = "" if not name or default else f"{name}/{word}@" if word else f"{name}@"
        return f"{self._url.scheme}://{login}{self._url}"

    def __repr__(self) -> str:
        return f"Broker connected at: {self.getUrl()}" if self.isConnected() else "Disconnected Broker"
