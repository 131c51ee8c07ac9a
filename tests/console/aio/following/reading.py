"""Reading changes of followed objects, and agents that report them."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from support.scripted_agent import ScriptedAgent

from qmf.console.aio import (
    ChangeKind,
    Follow,
    ObjectChange,
    RemoteObject,
)

T = TypeVar("T")


ADDED, CHANGED, LEFT, DELETED, LOST = ChangeKind


async def read(follow: Follow[T], count: int) -> list[ObjectChange[T]]:
    """So many changes."""
    async with asyncio.timeout(5):
        return [await anext(follow) for _ in range(count)]


async def read_kinds(follow: Follow[RemoteObject], count: int) -> list[tuple[ChangeKind, str]]:
    """So many changes in short, in order of name."""
    changes = await read(follow, count)
    return sorted(((item.kind, str(item.object.object_id)) for item in changes), key=lambda item: item[1])


def asked(agent: ScriptedAgent, kind: type) -> list[object]:
    return [item.content for item in agent.asked if isinstance(item.content, kind)]
