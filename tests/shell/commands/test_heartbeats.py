"""`heartbeats`."""

from __future__ import annotations

import json

from qmf_shell.render.styles import OutputStyle
from qmf_shell.session.context import Context
from shell.line_runner import run


def test_heartbeats(context: Context) -> None:
    import time

    from qmf_shell.session.backend import HeartbeatRecord
    from shell.fakes import ALPHA, BETA

    now = time.time_ns()
    url = "amqp://127.0.0.1:5672"
    context.heartbeats.add(HeartbeatRecord(ALPHA, now, now - 10**9, 10, url))
    context.heartbeats.add(HeartbeatRecord(ALPHA, now, now - 10**9, 10, url))
    context.heartbeats.add(HeartbeatRecord("example.org:host:gone", now, now - 60 * 10**9, 10, url))
    rows = {row["agent"]: row for row in map(json.loads, run(context, "heartbeats", style=OutputStyle.JSON).lines)}
    assert (rows[ALPHA]["seen"], rows[ALPHA]["state"], rows[ALPHA]["every"]) == (2, "alive", 10 * 10**9)
    assert rows[BETA]["state"] == "no heartbeat yet"
    assert rows["example.org:host:gone"]["state"] == "gone"
    context.heartbeats.add(HeartbeatRecord(BETA, now, now - 16 * 10**9, 10, url))
    rows = {row["agent"]: row for row in map(json.loads, run(context, "heartbeats beta", style=OutputStyle.JSON).lines)}
    assert {name: row["state"] for name, row in rows.items()} == {BETA: "late"}
