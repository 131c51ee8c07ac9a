"""Report the agents on a bus and their changes, until Ctrl-C: notifications as an asynchronous iterator.

python examples/heartbeat_monitor.py
python examples/heartbeat_monitor.py amqp://broker.example.org:5672 --beats
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence

from qmf.console.aio import (
    Agent,
    AgentAdded,
    AgentRemoved,
    AgentRestarted,
    BusConnected,
    BusDisconnected,
    Client,
    Dropped,
    HeartbeatSeen,
    Missed,
)
from qmf.errors import QmfError


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; returns its exit code."""
    options = arguments().parse_args(argv)
    try:
        asyncio.run(monitor(options.url, options.beats, options.seconds))
    except (KeyboardInterrupt, TimeoutError):
        return 0
    except QmfError as error:
        print(f"heartbeat_monitor: {error}", file=sys.stderr)
        return 1
    return 0


async def monitor(url: str, beats: bool, seconds: float | None) -> None:
    """Print a line for each notification; for heartbeats only with `beats`."""
    kinds = (AgentAdded, AgentRemoved, AgentRestarted, HeartbeatSeen, BusConnected, BusDisconnected, Missed)
    async with asyncio.timeout(seconds), Client(url, events=False, data=False) as client:
        for agent in client.agents:
            report(f"{agent.name} is present{_interval_text(agent)}")
        last: dict[str, float] = {}
        async for notification in client.notifications(*kinds):
            match notification:
                case AgentAdded(agent=agent):
                    report(f"{agent.name} appeared{_interval_text(agent)}")
                case AgentRestarted(agent=agent, old=old):
                    report(f"{agent.name} restarted: start {agent.epoch} after {old.epoch}")
                case AgentRemoved(agent=agent, reason=reason):
                    last.pop(agent.name, None)
                    report(f"{agent.name} has disappeared: {reason.value}")
                case HeartbeatSeen(agent=agent):
                    now = time.monotonic()
                    since = f", {now - last[agent.name]:.1f} s after the last" if agent.name in last else ""
                    last[agent.name] = now
                    if beats:
                        report(f"{agent.name} beats{since}")
                case Missed(agent=agent, count=count):
                    report(f"{count} messages of {agent.name} did not arrive")
                case BusDisconnected(reason=reason):
                    report(f"connection lost: {reason}")
                case BusConnected():
                    report("connected again")
                case Dropped(count=count):
                    report(f"{count} notifications were dropped")


def report(text: str) -> None:
    """Print a line with the time."""
    print(f"{time.strftime('%H:%M:%S')}  {text}", flush=True)


def _interval_text(agent: Agent) -> str:
    interval = agent.info.heartbeat_interval
    return f", a heartbeat every {interval:g} s" if interval else ""


def arguments() -> argparse.ArgumentParser:
    """The options of the command line."""
    parser = argparse.ArgumentParser(prog="heartbeat_monitor", description="Report changes of the agents on a bus.")
    parser.add_argument("url", nargs="?", default="amqp://127.0.0.1:5672", help="broker (%(default)s)")
    parser.add_argument("--beats", action="store_true", help="report every heartbeat, too")
    parser.add_argument("--seconds", type=float, metavar="S", help="end after so many seconds")
    return parser


if __name__ == "__main__":
    sys.exit(main())
