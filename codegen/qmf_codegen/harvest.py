"""From a live agent to XML files in memory: ask, put together, write, and check by reading again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import attrs

from qmf.console.aio import Client
from qmf.errors import Problem, SchemaError
from qmf.schema import parse_schema, to_xml
from qmf_codegen import marks
from qmf_codegen.assembling import AnySchema, Assembled, assemble
from qmf_codegen.generator import GeneratedFile
from qmf_codegen.live import published

#: Seconds that agents get to announce themselves, at most; as a rule, they have after much less.
_PATIENCE = 3.0

_ADVICE = "To edit it, remove this line: then it is never overwritten."


@attrs.frozen
class Harvest:
    """What came of an agent.

    Attributes:
        files: an XML file per package, sorted.
        notes: what XML cannot say as the agent does, one line each.
        problems: what keeps the files from being valid schemas; foreign agents have names that no schema file may have.
    """

    files: list[GeneratedFile]
    notes: list[str]
    problems: list[Problem]


def harvest(url: str, name: str, *, package: str | None, domain: str, timeout: float) -> Harvest:
    """Make schema files of what an agent publishes.

    Args:
        url: where the broker is.
        name, package: as of `qmf_codegen.live.published`.
        domain: QMF domain.
        timeout: seconds for connecting, and for each question.

    Raises:
        ConnectError: no connection.
        Others as of `qmf_codegen.live.published`.
    """

    async def ask() -> tuple[str, list[AnySchema]]:
        settle = min(timeout, _PATIENCE)
        async with Client(url, domain=domain, timeout=timeout, heartbeats=False, settle=settle) as client:
            return await published(client, name, package)

    agent, schemas = asyncio.run(ask())
    found = assemble(schemas)
    files = [_file(item, agent) for item in found]
    problems = [problem for file in files for problem in _problems(file)]
    return Harvest(files, [note for item in found for note in item.notes], problems)


def _file(item: Assembled, agent: str) -> GeneratedFile:
    text = f"{marks.markup(f'agent {agent}', _ADVICE)}\n{to_xml(item.schema)}"
    return GeneratedFile(Path(f"{item.schema.package}.xml"), text)


def _problems(file: GeneratedFile) -> tuple[Problem, ...]:
    try:
        parse_schema(file.text.encode(), str(file.path))
    except SchemaError as error:
        return error.problems
    return ()
