"""The sessions of MQTT as managed objects of the package ``qmf.mqtt``, and their events.

Imported only by a broker with MQTT.
"""

from __future__ import annotations

from qmf.agent import Agent
from qmf.broker.management.events import RaisingObserver
from qmf.broker.management.objects import ObjectPublisher
from qmf.broker.management.sampling import SampledObject, SampledObjects, StatisticsSampler
from qmf.broker.management.values import connection_address, lstr, sstr
from qmf.broker.nodes.observed_clients import LastingSession
from qmf.models.mqtt import agent as model

#: What agents of a broker with MQTT publish.
CLASSES = (model.MqttSession,)
EVENTS = (model.MqttSessionConnected, model.MqttSessionDisconnected, model.MqttSessionEnded)


class ManagedMqttSession(model.MqttSession, SampledObject):
    """A session."""

    def __init__(self, session: LastingSession, objects: ObjectPublisher) -> None:
        self._session = session
        self._objects = objects
        super().__init__(
            clientId=sstr(session.client_id),
            user=sstr(session.user),
            version=session.protocol,
            durable=session.durable,
            expiry=session.expiry,
            connected=False,
            willTopic="",
        )

    def sample(self) -> None:
        session, objects = self._session, self._objects
        client, queue = session.client, session.queue
        self.version, self.expiry = session.protocol, session.expiry
        self.connected, self.willTopic = client is not None, lstr(session.will_topic)
        self.connectionRef = None if client is None else objects.connection(client)
        self.queueRef = None if queue is None else objects.queue(queue)
        self.subscriptions = session.subscription_count
        self.queued = 0 if queue is None else queue.contents.depth.count
        self.inflight, self.unreleased = session.inflight, session.unreleased

    def disconnect(self) -> None:
        self._session.disconnect("disconnected by management")

    def end(self) -> None:
        self._session.discard("the session was ended by management")


class MqttSessionPublisher(RaisingObserver):
    """Adds an object for each session, and removes it with the session; raises events."""

    def __init__(self, agent: Agent, sampler: StatisticsSampler, objects: ObjectPublisher, listening: str) -> None:
        """Make the publisher, which is notified by the broker.

        Args:
            sampler: updates the objects from now on.
            objects: of the connections and queues of the broker.
            listening: host and port that the broker listens on.
        """
        super().__init__(agent)
        self._objects = objects
        self._listening = listening
        self._sessions = SampledObjects[LastingSession, ManagedMqttSession](agent, sampler, "MqttSession")

    def on_session_begun(self, session: LastingSession) -> None:
        self._sessions.add(session, ManagedMqttSession(session, self._objects))

    def on_session_connected(self, session: LastingSession) -> None:
        self._sample(session)
        client_id, user, expiry = sstr(session.client_id), sstr(session.user), session.expiry
        if (client := session.client) is not None:
            rhost = connection_address(client.info.local or self._listening, client.info.address)
            version = session.protocol
            self._raise(
                model.MqttSessionConnected(clientId=client_id, user=user, rhost=rhost, version=version, expiry=expiry)
            )

    def on_session_disconnected(self, session: LastingSession) -> None:
        self._sample(session)
        client_id, user = sstr(session.client_id), sstr(session.user)
        self._raise(model.MqttSessionDisconnected(clientId=client_id, user=user, expiry=session.expiry))

    def on_session_ended(self, session: LastingSession) -> None:
        self._sessions.remove(session)
        self._raise(model.MqttSessionEnded(clientId=sstr(session.client_id), user=sstr(session.user)))

    def _sample(self, session: LastingSession) -> None:
        if (managed := self._sessions.get(session)) is not None:
            managed.sample()
