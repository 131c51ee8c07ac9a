"""For benchmarks: an agent of ours with many queues of a broker, and a broker object that echoes.

    python bench/queue_agent.py URL OBJECTS INSTANCE

Says "ready", then does what lines on standard input say, each answered by "done": "events COUNT" raises events,
"change COUNT" changes so many queues, "spread COUNT RATE" has a thread raise events one by one, RATE in a second, and
"bursts COUNT RATE" raises the same in ten bursts a second. Ends with its input.
"""

from __future__ import annotations

import asyncio
import sys
import time

from qmf.agent import Agent
from qmf.agent.model.managed_object import layout_of
from qmf.models.broker.agent import Broker, BrokerEchoResult, Queue, Subscribe, Vhost


class EchoBroker(Broker):
    """A broker object, for its method."""

    def echo(self, sequence: int, body: str) -> BrokerEchoResult:
        """Return the arguments."""
        return BrokerEchoResult(sequence=sequence, body=body)


def make_queue(number: int, vhost: Vhost) -> Queue:
    """A queue, every statistic of which equals its number."""
    queue = Queue(
        name=f"queue-{number}", vhostRef=vhost, durable=False, autoDelete=False, exclusive=False, arguments={}
    )
    for field in layout_of(type(queue)).statistics:
        if field.formula is not None or field.type.base in ("bool", "sstr"):
            continue
        if field.direct:
            setattr(queue, field.python_name, number)
            continue
        accessor = getattr(queue, field.python_name)
        if hasattr(accessor, "sample"):
            accessor.sample(number)
        else:
            accessor.set(number)
    return queue


def change(queue: Queue) -> None:
    """What changes when a message passes through a queue."""
    queue.msgTotalEnqueues.inc()
    queue.byteTotalEnqueues.inc(512)
    queue.msgTotalDequeues.inc()
    queue.byteTotalDequeues.inc(512)


def make_event(number: int) -> Subscribe:
    """An event that has a number."""
    return Subscribe(
        rhost="127.0.0.1:40000", user="guest", qName=f"queue-{number}", dest="destination", excl=False, args={}
    )


def spread(agent: Agent, count: int, rate: int) -> None:
    """Raise events one by one, each at its own time. For a thread."""
    began = time.perf_counter()
    for number in range(count):
        time.sleep(max(0.0, began + number / rate - time.perf_counter()))
        agent.raise_event(make_event(number))


async def bursts(agent: Agent, count: int, rate: int) -> None:
    """Raise events, those of a tenth of a second together."""
    began = time.perf_counter()
    for number in range(count):
        if number % (rate // 10) == 0:
            await asyncio.sleep(max(0.0, began + number / rate - time.perf_counter()))
        agent.raise_event(make_event(number))


async def serve(url: str, objects: int, instance: str) -> None:
    """Run the agent until the input ends."""
    loop = asyncio.get_running_loop()
    async with Agent(
        url, vendor="example.org", product="bench", instance=instance, interval=10, event_limit=None
    ) as agent:
        broker = EchoBroker(name="bench")
        agent.add(broker)
        agent.register(Subscribe)
        vhost = Vhost(name="/", brokerRef=broker)
        agent.add(vhost)
        queues = [make_queue(number, vhost) for number in range(objects)]
        for queue in queues:
            agent.add(queue)
        await agent._core.publisher.publish()
        print("ready", flush=True)
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            word, count, *rate = line.split()
            if word == "events":
                for number in range(int(count)):
                    agent.raise_event(make_event(number))
                    if number % 500 == 499:
                        await asyncio.sleep(0)  # as a program does that raises events while it works
            elif word == "change":
                for queue in queues[: int(count)]:
                    change(queue)
                await agent._core.publisher.publish()
            elif word == "spread":
                await asyncio.to_thread(spread, agent, int(count), int(rate[0]))
            elif word == "bursts":
                await bursts(agent, int(count), int(rate[0]))
            print("done", flush=True)


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
