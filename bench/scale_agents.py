"""For benchmarks: many agents of ours in one process, each on a connection of its own and with one object.

    python bench/scale_agents.py URL COUNT [INTERVAL]

Prints "ready", then answers lines on standard input: "lost" when no agent is connected, "back" when all are. Ends with
its input.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
from collections.abc import Callable

from qmf.agent import Agent
from qmf.models.broker.agent import Broker

#: Seconds between two looks at the connections.
LOOK = 0.05
#: Collections of the second generation for one of the oldest: practically none.
SELDOM = 1_000_000
#: How many join at the same time: starts of agents are no storm, only their returns are.
AT_ONCE = 100


async def serve(url: str, count: int, interval: float) -> None:
    """Run the agents until the input ends; `interval` is the seconds between their heartbeats."""
    loop = asyncio.get_running_loop()
    agents = [
        Agent(url, vendor="example.org", product="scale", instance=str(number), interval=interval)
        for number in range(count)
    ]
    for agent in agents:
        agent.add(Broker(name="scale"))
    for at in range(0, count, AT_ONCE):
        await asyncio.gather(*(agent.start(60) for agent in agents[at : at + AT_ONCE]))
    # Agents are processes of their own elsewhere, and small; here the collector of one would look at those of all.
    gc.collect()
    gc.freeze()
    gc.set_threshold(*gc.get_threshold()[:2], SELDOM)
    print("ready", flush=True)
    states: dict[str, Callable[[], bool]] = {
        "lost": lambda: not any(agent.connected for agent in agents),
        "back": lambda: all(agent.connected for agent in agents),
    }
    while line := (await loop.run_in_executor(None, sys.stdin.readline)).strip():
        while not states[line]():  # noqa: ASYNC110 - the end of a connection sets no event
            await asyncio.sleep(LOOK)
        print(line, flush=True)
    await asyncio.gather(*(agent.close() for agent in agents))


if __name__ == "__main__":
    logging.disable(logging.WARNING)  # of each connection that is lost
    asyncio.run(serve(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]) if sys.argv[3:] else 10.0))
