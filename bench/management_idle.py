"""What the management of the broker costs while nothing happens: share of one core with 1,000 queues.

At each interval it reads the statistics of all its objects, publishes what has changed, and sends a heartbeat. Beside
it, the same broker without management. Each is a process of its own.

    python bench/management_idle.py [--json FILE] [--queues N] [--seconds N]
"""

from __future__ import annotations

import time

from agent_idle import share
from figures import Figure, parser, report
from processes import own_broker

#: Most that it may cost, in percent of one core.
LIMIT = 1.0

#: Seconds between publications: the default of the program, and of the broker of qmf-shell.
INTERVALS = (10, 5)


def main() -> None:
    """Measure and print."""
    arguments = parser("Cost of the management of a broker where nothing happens.")
    arguments.add_argument("--queues", type=int, default=1_000, metavar="N", help="queues (default: %(default)s)")
    arguments.add_argument(
        "--seconds", type=float, default=60.0, metavar="N", help="to look for (default: %(default)s)"
    )
    options = arguments.parse_args()
    with (
        own_broker(INTERVALS[0], options.queues) as (_, usual),
        own_broker(INTERVALS[1], options.queues) as (_, often),
        own_broker(0, options.queues) as (_, without),
    ):
        time.sleep(1)
        found = share({"usual": usual, "often": often, "without": without}, options.seconds)
    report(
        [
            Figure(
                f"idle management, {options.queues:,} queues, each {interval} s",
                found[name],
                "% of a core",
                peer="broker without management",
                peer_value=found["without"],
                limit=LIMIT,
            )
            for name, interval in zip(("usual", "often"), INTERVALS, strict=True)
        ],
        options.json,
    )


if __name__ == "__main__":
    main()
