"""How many objects an agent publishes in a second: queues of a broker, statistics changed, over the embedded broker.

The limit in the same run is the bus itself: the very same messages, encoded already, sent once more. What lies between
is reading values and encoding them.

    python bench/agent_publish.py [--json FILE] [--objects N] [--rounds N]
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable

from broker_queue import change, queue_class
from figures import Figure, note, parser, report

from qmf.agent import Agent, ManagedObject
from qmf.broker import EmbeddedBroker
from qmf.bus import AmqpBus


class Tap(AmqpBus):
    """A bus that remembers what goes through it."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.sent: list[bytes] = []

    async def send(self, data: bytes, *, confirm: bool = False) -> None:
        """Send, and keep a copy."""
        self.sent.append(data)
        await super().send(data, confirm=confirm)


async def measure(
    url: str, queues: list[ManagedObject], rounds: int, touch: Callable[[ManagedObject, int], None]
) -> dict[str, float]:
    """Medians of some rounds."""
    bus = Tap(url)
    publishing, raw, sizes = [], [], []
    async with Agent(bus, vendor="example.org", product="bench", interval=3600) as agent:
        for queue in queues:
            agent.add(queue)
        await agent._core.publisher.publish()  # once with everything: properties, and all classes known
        for number in range(rounds):
            for queue in queues:
                touch(queue, number)
            bus.sent.clear()
            begin = time.perf_counter()
            published = await agent._core.publisher.publish()
            publishing.append(time.perf_counter() - begin)
            assert published
            messages = bus.sent[:]
            sizes.append(sum(map(len, messages)))
            begin = time.perf_counter()
            for count, data in enumerate(messages, 1):
                await AmqpBus.send(bus, data, confirm=count == len(messages))
            raw.append(time.perf_counter() - begin)
        assert agent.statistics.objects_published == len(queues) * (rounds + 1)
    seconds, least = statistics.median(publishing), statistics.median(raw)
    return {
        "objects": len(queues),
        "objects_per_s": len(queues) / seconds,
        "raw_objects_per_s": len(queues) / least,
        "share_of_raw": least / seconds,
        "us_per_object": seconds / len(queues) * 1e6,
        "bytes_per_object": statistics.median(sizes) / len(queues),
        "messages": len(messages),
    }


def main() -> None:
    """Measure and print."""
    options = parser("Rate of publishing.")
    options.add_argument("--objects", type=int, default=10_000, metavar="N", help="objects (default: %(default)s)")
    options.add_argument("--rounds", type=int, default=5, metavar="N", help="rounds (default: %(default)s)")
    arguments = options.parse_args()
    cls = queue_class()
    queues: list[ManagedObject] = [
        cls(name=f"queue-{number}", durable=False, autoDelete=False, exclusive=False, arguments={})
        for number in range(arguments.objects)
    ]
    with EmbeddedBroker() as broker:
        figures = asyncio.run(measure(broker.url, queues, arguments.rounds, change))
    note(f"{figures['bytes_per_object']:.0f} bytes an object, {figures['messages']:.0f} messages")
    report(
        [
            Figure(
                f"publish {arguments.objects:,} changed objects",
                figures["objects_per_s"],
                "objects/s",
                "the same bytes, encoded",
                figures["raw_objects_per_s"],
            )
        ],
        arguments.json,
    )


if __name__ == "__main__":
    main()
