"""The access control of the broker as a managed object, and its events: the package ``org.apache.qpid.acl``."""

from __future__ import annotations

from collections.abc import Mapping

from qmf.acl import rules
from qmf.acl.ruleset import Decision
from qmf.acl.words import ACTIONS, LOOKUP_PROPERTIES, OBJECT_TYPES
from qmf.agent import Agent, MethodError
from qmf.broker.access.control import AccessWatcher, FileAccessControl
from qmf.broker.connection_limits import ConnectionLimits
from qmf.broker.management.callers import current_principal
from qmf.broker.management.sampling import SampledObject
from qmf.broker.management.values import lstr, sstr
from qmf.errors import CallerError
from qmf.models.acl import agent as model
from qmf.models.broker import agent as broker_model

#: What agents with access control publish.
CLASSES = (model.Acl,)
EVENTS = (model.Allow, model.Deny, model.ConnectionDeny, model.QueueQuotaDeny, model.FileLoaded, model.FileLoadFailed)


class ManagedAcl(model.Acl, SampledObject):
    """Access control."""

    def __init__(self, broker: broker_model.Broker, access: FileAccessControl, limits: ConnectionLimits) -> None:
        """Make the object of the broker's access control.

        Args:
            broker: that is controlled.
            limits: numbers of connections.
        """
        super().__init__(
            brokerRef=broker,
            policyFile=lstr(str(access.file)),
            enforcingAcl=True,
            maxConnections=limits.total,
            maxConnectionsPerIp=limits.per_address,
            maxConnectionsPerUser=access.connections_per_user,
            maxQueuesPerUser=access.queues_per_user,
        )
        self._access = access
        self.sample()

    def sample(self) -> None:
        access, denials = self._access, self._access.denials
        self.transferAcl = access.rules.has_publish_rules
        self.lastAclLoad = access.loaded
        self.aclDenyCount.set(denials.requests)
        self.connectionDenyCount.set(denials.connections)
        self.queueQuotaDenyCount.set(denials.queues)

    def reloadACLFile(self) -> None:
        try:
            self._access.reload()
        except CallerError as error:
            raise MethodError(str(error)) from error

    def Lookup(
        self, userId: str, action: str, object: str, objectName: str, propertyMap: Mapping[str, object]
    ) -> model.AclLookupResult:
        for kind, word, known in (
            ("object", object, OBJECT_TYPES),
            ("action", action, ACTIONS),
            *(("property", name, LOOKUP_PROPERTIES) for name in propertyMap),
        ):
            if word not in known:
                raise MethodError(f"AclLookup invalid name : Acl illegal {kind} name: {word}")
        properties = {name: str(value) for name, value in propertyMap.items()}
        return model.AclLookupResult(result=self._decide(rules.Lookup(userId, action, object, objectName, properties)))

    def LookupPublish(self, userId: str, exchangeName: str, routingKey: str) -> model.AclLookupPublishResult:
        key = {"routingkey": routingKey}
        lookup = rules.Lookup(userId, "publish", "exchange", exchangeName, key, publishing=True)
        return model.AclLookupPublishResult(result=self._decide(lookup))

    def _decide(self, lookup: rules.Lookup) -> str:
        return self._access.rules.decide(lookup).outcome.value


class AclEvents(AccessWatcher):
    """Raises events for decisions."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def on_decision(self, lookup: rules.Lookup, decision: Decision) -> None:
        event = model.Allow if decision.allows else model.Deny
        self._agent.raise_event(
            event(
                userId=sstr(lookup.user),
                action=lookup.action,
                objectType=lookup.object_type,
                objectName=sstr(lookup.name),
                arguments=dict(lookup.properties or {}),
            )
        )

    def on_connection_denied(self, user: str, host: str) -> None:
        self._agent.raise_event(model.ConnectionDeny(userId=sstr(user), clientAddr=sstr(host)))

    def on_queue_denied(self, user: str, queue: str) -> None:
        self._agent.raise_event(model.QueueQuotaDeny(userId=sstr(user), queueName=sstr(queue)))

    def on_loaded(self) -> None:
        self._agent.raise_event(model.FileLoaded(userId=sstr(current_principal().user)))

    def on_load_failed(self, reason: str) -> None:
        self._agent.raise_event(model.FileLoadFailed(userId=sstr(current_principal().user), reason=lstr(reason)))
