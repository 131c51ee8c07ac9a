"""What an agent costs that has nothing to tell: share of one core with 10,000 queues that do not change.

It goes through all its objects at each interval, and sends a heartbeat. Beside it, an agent with no objects: what
heartbeats alone cost. Each is a process of its own, on the embedded broker in another one.

    python bench/agent_idle.py [--json FILE] [--objects N] [--seconds N]
"""

from __future__ import annotations

import time

from figures import Figure, parser, report
from processes import Program, own_agent, own_broker

#: Most that it may cost, in percent of one core.
LIMIT = 0.5

#: Seconds between publications and heartbeats of the agents measured, which is an agent's default.
INTERVAL = 10


def share(agents: dict[str, Program], seconds: float) -> dict[str, float]:
    """Percent of one core that each agent uses."""
    # Past the publication of everything that is new, and the garbage collection behind it.
    time.sleep(2 * INTERVAL)
    before = {name: agent.cpu() for name, agent in agents.items()}
    begin = time.monotonic()
    time.sleep(seconds)
    passed = time.monotonic() - begin
    return {name: 100 * (agent.cpu() - before[name]) / passed for name, agent in agents.items()}


def main() -> None:
    """Measure and print."""
    arguments = parser("Cost of an agent whose objects do not change.")
    arguments.add_argument("--objects", type=int, default=10_000, metavar="N", help="queues (default: %(default)s)")
    arguments.add_argument(
        "--seconds", type=float, default=6 * INTERVAL, metavar="N", help="to look for (default: %(default)s)"
    )
    options = arguments.parse_args()
    with (
        own_broker() as (url, _),
        own_agent(url, options.objects, "full") as full,
        own_agent(url, 0, "empty") as empty,
    ):
        found = share({"full": full, "empty": empty}, options.seconds)
    figure = Figure(
        f"idle agent, {options.objects:,} queues",
        found["full"],
        "% of a core",
        peer="agent without objects",
        peer_value=found["empty"],
        limit=LIMIT,
    )
    report([figure], options.json)


if __name__ == "__main__":
    main()
