"""Announcements of agents for tests."""

from __future__ import annotations

import attrs

from qmf.console.aio.agents.registry import (
    info_from_name,
)
from qmf.protocol import AgentInfo

NAME = "example.org:widgets:1"


def info(name: str = NAME, **changes: object) -> AgentInfo:
    return attrs.evolve(info_from_name(name), **{"epoch": 1, "heartbeat_interval": 10, **changes})  # type: ignore[arg-type]
