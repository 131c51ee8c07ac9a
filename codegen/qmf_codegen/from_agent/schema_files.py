"""The schemas of a live agent as XML files in memory, which are checked by reading them again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import attrs

from qmf.bus import Bus
from qmf.console.aio import Client
from qmf.errors import SchemaError, SchemaProblem
from qmf.schema import parse_schema, to_xml
from qmf_codegen import headers
from qmf_codegen.from_agent.assembly import AnySchema, AssembledPackage, assemble
from qmf_codegen.from_agent.discovery import discover_schemas
from qmf_codegen.outputs import GeneratedFile

#: Longest wait for agents to announce themselves, in seconds.
_SETTLE_TIME = 3.0

_ADVICE = "To edit it, remove this line: then it is never overwritten."


@attrs.frozen
class AgentSchemaFiles:
    """The schemas of an agent as files.

    Attributes:
        files: an XML file per package, sorted.
        notes: differences from the agent's schemas that XML cannot express, one line each.
        problems: the reasons why files are not valid schemas; foreign agents have names that no schema file may have.
    """

    files: list[GeneratedFile]
    notes: list[str]
    problems: list[SchemaProblem]


def read_agent(
    url_or_bus: str | Bus, name: str, *, package: str | None, domain: str, timeout: float
) -> AgentSchemaFiles:
    """Make schema files of the classes and events that an agent publishes.

    Args:
        url_or_bus: the broker's URL, or a bus.
        name, package: see `discover_schemas`.
        domain: QMF domain.
        timeout: longest time for connecting, and for each request, in seconds.

    Raises:
        ConnectError: no connection.
        CodegenError, QmfError: see `discover_schemas`.
    """

    async def query() -> tuple[str, list[AnySchema]]:
        settle = min(timeout, _SETTLE_TIME)
        async with Client(url_or_bus, domain=domain, timeout=timeout, heartbeats=False, settle=settle) as client:
            return await discover_schemas(client, name, package)

    agent, schemas = asyncio.run(query())
    found = assemble(schemas)
    files = [_file(item, agent) for item in found]
    problems = [problem for file in files for problem in _problems(file)]
    return AgentSchemaFiles(files, [note for item in found for note in item.notes], problems)


def _file(item: AssembledPackage, agent: str) -> GeneratedFile:
    text = f"{headers.markup(f'agent {agent}', _ADVICE)}\n{to_xml(item.schema)}"
    return GeneratedFile(Path(f"{item.schema.package}.xml"), text)


def _problems(file: GeneratedFile) -> tuple[SchemaProblem, ...]:
    try:
        parse_schema(file.text.encode(), str(file.path))
    except SchemaError as error:
        return error.problems
    return ()
