"""Tell which agents are on a bus and what becomes of them, until Ctrl-C: news as an asynchronous iterator.

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
    """Print a line for each piece of news; of heartbeats only when `beats`."""
    kinds = (AgentAdded, AgentRemoved, AgentRestarted, HeartbeatSeen, BusConnected, BusDisconnected, Missed)
    async with asyncio.timeout(seconds), Client(url, events=False, data=False) as client:
        for agent in client.agents:
            tell(f"{agent.name} is there{_facts(agent)}")
        last: dict[str, float] = {}
        async for news in client.notifications(*kinds):
            match news:
                case AgentAdded(agent=agent):
                    tell(f"{agent.name} appeared{_facts(agent)}")
                case AgentRestarted(agent=agent, old=old):
                    tell(f"{agent.name} restarted: start {agent.epoch} after {old.epoch}")
                case AgentRemoved(agent=agent, reason=reason):
                    last.pop(agent.name, None)
                    tell(f"{agent.name} is gone: {reason.value}")
                case HeartbeatSeen(agent=agent):
                    now = time.monotonic()
                    since = f", {now - last[agent.name]:.1f} s after the last" if agent.name in last else ""
                    last[agent.name] = now
                    if beats:
                        tell(f"{agent.name} beats{since}")
                case Missed(agent=agent, count=count):
                    tell(f"{count} messages of {agent.name} did not arrive")
                case BusDisconnected(reason=reason):
                    tell(f"connection lost: {reason}")
                case BusConnected():
                    tell("connected again")
                case Dropped(count=count):
                    tell(f"{count} news were too many to tell")


def tell(text: str) -> None:
    """Print a line with the time."""
    print(f"{time.strftime('%H:%M:%S')}  {text}", flush=True)


def _facts(agent: Agent) -> str:
    interval = agent.info.heartbeat_interval
    return f", a heartbeat every {interval:g} s" if interval else ""


def arguments() -> argparse.ArgumentParser:
    """What the command line may hold."""
    parser = argparse.ArgumentParser(prog="heartbeat_monitor", description="Tell which agents are on a bus.")
    parser.add_argument("url", nargs="?", default="amqp://127.0.0.1:5672", help="broker (%(default)s)")
    parser.add_argument("--beats", action="store_true", help="tell every heartbeat, too")
    parser.add_argument("--seconds", type=float, metavar="S", help="end after so many seconds")
    return parser


if __name__ == "__main__":
    sys.exit(main())
