"""Routes for what is on the bus: agents, packages, classes, schemas."""

# No postponed annotations: those of routes name what only their function knows.

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Query

from qmf.errors import QmfError
from qmf.web.addresses import API
from qmf.web.management.managements import Managements, ReadingCaller
from qmf.web.management.parameters import (
    AGENT_PROBLEMS,
    AgentName,
    ClassName,
    Package,
    api_router,
    name,
    problems,
)
from qmf.web.management.representations import agent_json, class_json, schema_json
from qmf.web.problems import problem_of
from qmf.web.scopes import Scope


def router(managements: Managements) -> APIRouter:
    """The routes."""
    routes = api_router("agents and schemas")
    Reading = Annotated[ReadingCaller, Depends(managements.require(Scope.READ))]

    @routes.get("", summary="Where everything is")
    async def index(reader: Reading) -> dict[str, Any]:
        client = reader.management.client
        broker = client.broker
        return {
            "url": client.url,
            "connected": client.connected,
            "broker": None if broker is None else agent_json(broker),
            "agents": f"{API}/agents",
            "packages": f"{API}/packages",
            "classes": f"{API}/classes",
            "objects": f"{API}/objects{{?class,package,agent,where,fields,sort,limit,cursor}}",
            "changes": f"{API}/changes{{?class,package,agent,where,fields,interval}}",
            "events": f"{API}/events",
            "eventStream": f"{API}/events/stream",
            "jobs": f"{API}/jobs",
            "metrics": "/metrics",
            "openapi": "/api/openapi.json",
        }

    @routes.get("/agents", summary="The agents present")
    async def agents(reader: Reading) -> dict[str, Any]:
        found = sorted(reader.management.client.agents, key=lambda agent: agent.name)
        return {"agents": [agent_json(agent) for agent in found]}

    @routes.get("/agents/{agent}", summary="An agent with its classes", responses=problems(*AGENT_PROBLEMS))
    async def agent(reader: Reading, agent: AgentName) -> dict[str, Any]:
        found = reader.management.agent(name(agent))
        keys = await reader.management.client.classes(agent=found)
        return {**agent_json(found), "classes": [class_json(key) for key in keys]}

    @routes.get("/packages", summary="The packages of all agents", responses=problems(*AGENT_PROBLEMS))
    async def packages(reader: Reading) -> dict[str, Any]:
        found = await reader.management.client.packages()
        return {"packages": list(found), "failures": failures_json(found.failures)}

    @routes.get("/classes", summary="The classes and events of all agents", responses=problems(*AGENT_PROBLEMS))
    async def classes(
        reader: Reading,
        package: Annotated[str | None, Query(max_length=255)] = None,
        agent: Annotated[str | None, Query(max_length=1000)] = None,
    ) -> dict[str, Any]:
        found = await reader.management.client.classes(package or None, agent=agent or None)
        return {"classes": [class_json(key) for key in found], "failures": failures_json(found.failures)}

    @routes.get("/schemas/{package}/{class_name}", summary="A schema", responses=problems(*AGENT_PROBLEMS))
    async def schema(
        reader: Reading,
        package: Package,
        class_name: ClassName,
        hash: Annotated[UUID | None, Query(description="That version; default: the one seen last")] = None,
    ) -> dict[str, Any]:
        return schema_json(await reader.management.schema(name(package), name(class_name), hash))

    return routes


def failures_json(failures: Any) -> dict[str, Any]:
    """Why agents did not answer, by their names."""
    found: dict[str, QmfError] = dict(failures)
    return {agent: problem_of(error).content() for agent, error in found.items()}
