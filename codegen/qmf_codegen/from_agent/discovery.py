"""Reads the schemas of a live agent over the bus.

Agents of this project publish everything in their schema file except comments and groups. Agents of libqmf2 publish
neither statistics nor bounds. qpidd's agent answers in QMFv1, which has counters as plain integers, and neither
severities nor the classes of references (QMF2.md 5.3, 8).
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from qmf.console.aio import Agent, Client
from qmf_codegen.errors import CodegenError
from qmf_codegen.from_agent.assembly import AnySchema

#: Stands for the agent inside the broker.
BROKER = "broker"

_MAX_SHOWN = 5


async def discover_schemas(client: Client, name: str, package: str | None = None) -> tuple[str, list[AnySchema]]:
    """Query an agent for its classes and events.

    Args:
        client: an open client.
        name: the agent's full name, or a part that no other agent's name has; ``broker`` for the agent of the broker.
        package: only classes of this package; None for all.

    Returns:
        the agent's full name, and its schemas.

    Raises:
        CodegenError: no such agent, more than one, or it has no class in the package.
        QmfError: no answer.
    """
    agent = _find(client, name)
    keys = await client.classes(agent=agent)
    wanted = [key for key in keys if package in (None, key.package)]
    if not wanted:
        raise CodegenError(_no_classes(agent.name, package, {key.package for key in keys}))
    return agent.name, [await client.schema(key) for key in wanted]


def _find(client: Client, name: str) -> Agent:
    if name == BROKER and client.broker is not None:
        return client.broker
    agents = {agent.name: agent for agent in client.agents}
    if name in agents:
        return agents[name]
    found = [full for full in agents if name in full]
    if len(found) == 1:
        return agents[found[0]]
    if found:
        raise CodegenError(f"several agents at {client.url} have {name!r} in their name: {_list(sorted(found))}")
    raise CodegenError(f"no agent {name!r} at {client.url}{_hint(name, list(agents), client.broker)}")


def _hint(name: str, known: Sequence[str], broker: Agent | None) -> str:
    """The agents with the most similar name, whole or in one part; all agents if no name is similar."""
    if not known:
        return ": no agent has announced itself"
    parts = {part: full for full in known for part in (*full.split(":"), full)}
    if broker is not None:
        parts[BROKER] = BROKER
    near = dict.fromkeys(parts[part] for part in difflib.get_close_matches(name, parts, n=_MAX_SHOWN, cutoff=0.6))
    return f"; did you mean {' or '.join(near)}?" if near else f"; there are {_list(sorted(known))}"


def _list(names: Sequence[str]) -> str:
    more = len(names) - _MAX_SHOWN
    return ", ".join(names[:_MAX_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _no_classes(agent: str, package: str | None, packages: set[str]) -> str:
    if packages:
        return f"agent {agent} has no package {package!r}; it has {_list(sorted(packages))}"
    return f"agent {agent} publishes no classes"
