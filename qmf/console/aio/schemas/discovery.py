"""Schema discovery: asking agents which packages and classes they have, and for the schemas of these.

Agents with capability 1 answer QMFv2 schema queries. qpidd doesn't: its packages and classes are listed by QMFv1 `P`
and `Q`, and its schemas come by `S` with the hash that objects carry. Other agents of capability 0 answer `S`, but have
no list; their classes are known once one of their objects or events was received (QMF2.md 5.3, 8).
"""

from __future__ import annotations

import functools
import logging
from uuid import UUID

from qmf.console.aio.agents.registry import Agent, AgentRegistry
from qmf.console.aio.rpc.channel import RpcChannel
from qmf.console.aio.rpc.requests import AgentLost
from qmf.console.aio.schemas.cache import AnySchema
from qmf.errors import NotFoundError, PeerError, QmfError, RemoteError
from qmf.protocol import (
    BrokerRequest,
    BrokerResponse,
    ClassesRequest,
    ClassResponse,
    PackageResponse,
    PackagesRequest,
    QueryRequest,
    SchemaIdsResponse,
    SchemaRequest,
    SchemaResponse,
    SchemasResponse,
    What,
)
from qmf.schema import ClassKey

log = logging.getLogger("qmf.console")


class SchemaDiscovery:
    """Lists classes and fetches schemas."""

    def __init__(self, rpc: RpcChannel, agents: AgentRegistry, timeout: float) -> None:
        """Make a discovery; schemas are waited for up to `timeout` seconds."""
        self._rpc = rpc
        self._agents = agents
        self._timeout = timeout
        self._listed: dict[str, tuple[int, int]] = {}

    def can_list(self, agent: Agent) -> bool:
        """True when the agent answers requests for the list of its classes."""
        return agent.knows_schema_queries or (agent.is_broker and agent.is_qpidd)

    def is_listed(self, agent: Agent) -> bool:
        """True when the agent's list was received, and it has not announced a change of its schemas since."""
        return self._listed.get(agent.name) == _version(agent)

    def forget(self, agent: str) -> None:
        """The agent is gone or has restarted: its list is no longer valid."""
        self._listed.pop(agent, None)

    async def classes(self, agent: Agent, timeout: float) -> list[ClassKey]:
        """The keys of all classes and events of an agent; empty for one that has no list.

        Raises:
            RequestTimeout, NetworkError, AgentLost, RemoteError, ProtocolError: no usable answer.
        """
        version = _version(agent)
        if agent.knows_schema_queries:
            keys = await self._classes_v2(agent, timeout)
        elif self.can_list(agent):
            keys = await self._classes_v1(agent, timeout)
        else:
            return []
        self._listed[agent.name] = version
        return keys

    async def broker_id(self, agent: Agent, timeout: float) -> UUID | None:
        """The id of the broker that an agent is part of; None for agents other than qpidd's."""
        if not (agent.is_broker and agent.is_qpidd):
            return None
        frames = await self._rpc.request_v1(
            agent, BrokerRequest, BrokerResponse, what="query for broker id", timeout=timeout
        )
        return frames[0].broker_id if frames else None

    async def schema(self, key: ClassKey, names: tuple[str, ...]) -> AnySchema:
        """Fetch a schema.

        Args:
            key: the class or event; its hash must be known.
            names: names of the agents that use it, in the order in which they are asked. Without any, all agents that
                can list their classes are asked.

        Raises:
            NotFoundError: none of the agents has it.
            QmfError: none of the agents has it, and one of them did not answer.
        """
        users = [agent for agent in (self._agents.get(name) for name in names) if agent is not None]
        asked = users or [agent for agent in self._agents if self.can_list(agent)]
        failure: QmfError | None = None
        for agent in asked:
            try:
                return await self._schema_from(key, agent)
            except QmfError as error:
                log.debug("no schema of %s from %s: %s", key, agent.name, error)
                if not isinstance(error, NotFoundError):
                    failure = error
        raise failure or NotFoundError("schema", str(key))

    async def _schema_from(self, key: ClassKey, agent: Agent) -> AnySchema:
        # An agent that is known by its name only most probably has capability 1, as nearly all have.
        if agent.knows_schema_queries or not (agent.is_announced or agent.is_qpidd):
            try:
                return await self._schema_v2(key, agent)
            except AgentLost:
                raise
            except PeerError as error:
                log.debug("%s refused a v2 schema query, trying v1: %s", agent.name, error)
        return await self._schema_v1(key, agent)

    async def _classes_v2(self, agent: Agent, timeout: float) -> list[ClassKey]:
        parts = await self._rpc.request(
            agent, QueryRequest(what=What.SCHEMA_ID), SchemaIdsResponse, what="query for classes", timeout=timeout
        )
        return [key for part in parts for key in part.keys]

    async def _classes_v1(self, agent: Agent, timeout: float) -> list[ClassKey]:
        packages = await self._rpc.request_v1(
            agent, PackagesRequest, PackageResponse, what="query for packages", timeout=timeout
        )
        keys = []
        for package in [frame.package for frame in packages]:
            found = await self._rpc.request_v1(
                agent,
                functools.partial(ClassesRequest, package),
                ClassResponse,
                what=f"query for classes of {package}",
                timeout=timeout,
            )
            keys += [frame.key for frame in found]
        return keys

    async def _schema_v2(self, key: ClassKey, agent: Agent) -> AnySchema:
        parts = await self._rpc.request(
            agent,
            QueryRequest(what=What.SCHEMA, class_key=key),
            SchemasResponse,
            what=f"query for schema of {key}",
            timeout=self._timeout,
        )
        for part in parts:
            for schema in part.schemas:
                return schema
        raise NotFoundError("schema", str(key))

    async def _schema_v1(self, key: ClassKey, agent: Agent) -> AnySchema:
        try:
            frames = await self._rpc.request_v1(
                agent,
                functools.partial(SchemaRequest, key),
                SchemaResponse,
                what=f"request for schema of {key}",
                timeout=self._timeout,
            )
        except RemoteError as error:
            raise NotFoundError("schema", str(key)) from error  # QMFv1 refuses for no other reason
        for frame in frames:
            return frame.schema
        raise NotFoundError("schema", str(key))


def _version(agent: Agent) -> tuple[int, int]:
    return agent.epoch, agent.info.schema_updated
