"""Remote events."""

from __future__ import annotations

import pytest
from console.aio.objects.remotes import AGENT

from qmf.console.aio import (
    RemoteEvent,
)
from qmf.console.aio.agents import Agent, info_from_name
from qmf.schema import Severity


@pytest.mark.parametrize(("severity", "level"), [(0, Severity.EMERG), (7, Severity.DEBUG), (8, None), (-1, None)])
def test_an_event_has_a_level_where_its_severity_is_one(severity: int, level: Severity | None) -> None:
    agent = Agent(info_from_name(AGENT))
    event = RemoteEvent(agent=agent, class_key=None, schema=None, timestamp=0, severity=severity, arguments={})
    assert event.level is level
