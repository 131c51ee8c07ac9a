"""How costs grow with agents, objects, consoles, events, their rate, calls and classes: at three sizes, with exponents.

Broker, agents and consoles are processes of their own, and so is what measures each size: memory that a smaller size
has left behind would hide what a larger one needs. Of each step the processor time of all of them, the wall time
and the memory that was added are printed. The exponent compares the two largest sizes: 1 means that ten times the size
costs ten times as much, 2 a hundred times. More than 1.1 is marked, of processor time and of memory; wall times depend
on intervals, and on what else the machine does.

    python bench/scale.py [--rows NAME...] [--factor N] [--json FILE] [--picture FILE]

`--factor 0.1` makes every size a tenth. Each agent and each console is a connection: the limit of open files
(`ulimit -n`) bounds them. `--picture` draws the curves as SVG; it needs matplotlib.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import multiprocessing
import resource
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import attrs
from figures import Figure, parser, report
from processes import Program, own_agent, own_broker, program
from scale_meter import Meter, Step, expect
from scale_rates import rates

from qmf.agent import Agent
from qmf.console.aio import AgentAdded, Client
from qmf.schema import ClassSchema, parse_schema

#: The largest exponent that is wanted.
LIMIT = 1.1
#: Steps shorter than this are not judged: their processor time is that of a few ticks of the system's clock.
JUDGED_SECONDS, JUDGED_MEGABYTES = 0.3, 8.0
#: Seconds between publications of the broker's own agent, which is one more and says how many there are, and between
#: heartbeats of the others: longer than they join, so that those who wait for the last ones cost little meanwhile.
INTERVAL = 60.0
#: Seconds in which idle agents are looked at: a heartbeat of each.
IDLE = 60.0
#: Seconds for each step of a handshake when all agents, which are one process, come back.
PATIENCE = 60.0
#: Objects that change in the row of consoles, events to each console, calls by each caller, objects of an agent there.
CHANGES, EVENTS, CALLS = 1_000, 500, 100
PACKAGE, CLASSES = "org.apache.qpid.broker", "org.example.scale"
_HERE = Path(__file__).resolve().parent


def agents(size: int) -> list[Step]:
    """Agents join, are found, are asked, are idle, and come back after the broker was restarted."""
    with contextlib.ExitStack() as stack:
        url, broker = stack.enter_context(own_broker(INTERVAL))
        first = Meter(size, broker=broker)
        with first.step("agents join"):
            crowd = stack.enter_context(_program("scale_agents", url, size, f"{INTERVAL:g}"))
            first.add("agents", crowd)
            expect(crowd.line(), "ready", "agents")
        asyncio.run(_look_at_agents(url, size, first))
        broker.kill()
        expect(crowd.ask("lost"), "lost", "agents")
        again, restarted = stack.enter_context(own_broker(INTERVAL, 0, int(url.rpartition(":")[2]), PATIENCE))
        expect(again, url, "the restarted broker")
        meter = Meter(size, broker=restarted, agents=crowd)
        with meter.step("agents come back"):
            expect(crowd.ask("back"), "back", "agents")
            asyncio.run(_all_present(url, size))
        return first.steps + meter.steps


async def _look_at_agents(url: str, size: int, meter: Meter) -> None:
    with meter.step("agents are found by a console"):
        client = Client(url, timeout=120)
        await client.open()
        expect(len(client.agents), size + 1, "agents found")
    try:
        with meter.step("agents are asked for an object each"):
            found = await client.objects("broker", package=PACKAGE)
            expect((len(found), found.failures), (size + 1, {}), "objects found")
        with meter.step(f"agents idle for {IDLE:g} s"):
            await asyncio.sleep(IDLE)
    finally:
        await client.close()


async def _all_present(url: str, size: int) -> None:
    """Wait until a new console knows all agents, those too that have yet to announce themselves."""
    async with Client(url, timeout=120) as client, asyncio.timeout(120):
        present = {agent.name for agent in client.agents}
        with client.follow_agents(size + 1000) as changes:
            while len(present) <= size:
                item = await anext(changes)
                if isinstance(item, AgentAdded):
                    present.add(item.agent.name)


def objects(size: int) -> list[Step]:
    """Objects of one agent are asked for, followed, and changed."""
    with own_broker() as (url, broker):
        meter = Meter(size, broker=broker)
        with contextlib.ExitStack() as stack:
            with meter.step("objects are made and published"):
                agent = stack.enter_context(own_agent(url, size))
                meter.add("agent", agent)
            asyncio.run(_look_at_objects(url, size, agent, meter))
    return meter.steps


async def _look_at_objects(url: str, size: int, agent: Program, meter: Meter) -> None:
    async with Client(url, data=False, timeout=120) as client:
        await client.objects("broker", package=PACKAGE)  # learns what a first request learns
        with meter.step("objects are asked for"):
            found = await client.objects("queue", package=PACKAGE)
            expect(len(found), size, "objects found")
            del found
        with meter.step("objects are followed"):
            followed = client.follow("queue", package=PACKAGE, interval=1.0)
            for _ in range(size):
                await anext(followed)
        with meter.step("objects change"):
            agent.tell(f"change {size}")
            for _ in range(size):
                await anext(followed)
        expect(await asyncio.to_thread(agent.line), "done", "the agent")


def consoles(size: int) -> list[Step]:
    """Consoles open, and follow the same objects, which change."""
    with own_broker() as (url, broker), own_agent(url, CHANGES) as agent, contextlib.ExitStack() as stack:
        meter = Meter(size, broker=broker, agent=agent)
        with meter.step("consoles open"):
            party = _party(stack, url, size, meter)
        with meter.step(f"consoles follow {CHANGES:,} objects"):
            _done(party.ask(f"follow {CHANGES}"))
        with meter.step(f"consoles receive {CHANGES:,} changes"):
            _wait(party, agent, f"changes {CHANGES}", f"change {CHANGES}")
    return meter.steps


def events(size: int) -> list[Step]:
    """Events reach consoles."""
    with own_broker() as (url, broker), own_agent(url, 0) as agent, contextlib.ExitStack() as stack:
        meter = Meter(size, broker=broker, agent=agent)
        party = _party(stack, url, size, meter)
        _wait(party, agent, "events 1", "events 1")
        with meter.step(f"consoles receive {EVENTS:,} events"):
            _wait(party, agent, f"events {EVENTS}", f"events {EVENTS}")
    return meter.steps


def calls(size: int) -> list[Step]:
    """Consoles call methods of one agent."""
    with own_broker() as (url, broker), own_agent(url, 0) as agent, contextlib.ExitStack() as stack:
        meter = Meter(size, broker=broker, agent=agent)
        party = _party(stack, url, size, meter)
        with meter.step(f"consoles call {CALLS:,} times each"):
            expect(party.ask(f"calls {CALLS}"), "waiting", "consoles")
            _done(party.line())
    return meter.steps


def classes(size: int) -> list[Step]:
    """Classes are registered by an agent, and their schemas learnt by a console. Both are this process."""
    with own_broker() as (url, broker):
        meter = Meter(size, broker=broker)
        asyncio.run(_learn_classes(url, size, meter))
    return meter.steps


def _class_schemas(size: int) -> list[ClassSchema]:
    """Small classes of one package, from files of a thousand."""
    members = '<property name="name" type="sstr" index="y"/><statistic name="count" type="uint64"/>'
    found: list[ClassSchema] = []
    for at in range(0, size, 1000):
        names = range(at, min(at + 1000, size))
        body = "".join(f'<class name="Class{name}">{members}</class>' for name in names)
        found += parse_schema(f'<schema package="{CLASSES}">{body}</schema>'.encode(), "scale.xml").classes
    return found


async def _learn_classes(url: str, size: int, meter: Meter) -> None:
    schemas = _class_schemas(size)
    async with Agent(url, vendor="example.org", product="scale") as agent:
        with meter.step("classes are registered"):
            agent.register(*schemas)
        async with Client(url, timeout=120) as client:
            with meter.step("classes are listed"):
                keys = await client.classes(CLASSES)
                expect((len(keys), keys.failures), (size, {}), "classes found")
            with meter.step("schemas are learnt"):
                for key in keys:
                    await client.schema(key)


@attrs.frozen
class Row:
    """What varies: the sizes, and the steps at a size."""

    sizes: tuple[int, ...]
    measure: Callable[[int], list[Step]]

    def steps(self, size: int) -> list[Step]:
        """Measure a size, in a process of its own."""
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as alone:
            return alone.submit(self.measure, size).result()


ROWS = {
    "agents": Row((250, 1_000, 4_000), agents),
    "objects": Row((5_000, 20_000, 80_000), objects),
    "consoles": Row((5, 20, 80), consoles),
    "events": Row((5, 20, 80), events),
    "rates": Row((1_250, 2_500, 5_000), rates),
    "calls": Row((5, 20, 80), calls),
    "classes": Row((200, 800, 3_200), classes),
}


def exponents(steps: Sequence[Step]) -> list[Figure]:
    """The growth of one step between its two largest sizes."""
    smaller, larger = sorted(steps, key=lambda step: step.size)[-2:]
    span = f"{larger.name}, {smaller.size:,} to {larger.size:,}"
    figures = []
    for what, first, last, least in (
        ("processor time", smaller.total, larger.total, JUDGED_SECONDS),
        ("memory", smaller.memory, larger.memory, JUDGED_MEGABYTES),
    ):
        if min(first, last) > 0 and last >= least:
            value = math.log(last / first) / math.log(larger.size / smaller.size)
            figures.append(Figure(f"{span}: {what}", value, "exponent", limit=LIMIT if first >= least / 4 else None))
    return figures


def figures_of(steps: Sequence[Step]) -> list[Figure]:
    """The costs of one step at its sizes, and its growth."""
    figures = [
        Figure(f"{step.name}, {step.size:,}", step.total / step.size * 1e3, "ms of the processor each")
        for step in steps
    ]
    return figures + exponents(steps) + [figure for step in steps for figure in step.more]


def _program(name: str, url: str, size: int, *more: str) -> contextlib.AbstractContextManager[Program]:
    return program(sys.executable, str(_HERE / f"{name}.py"), url, str(size), *more)


def _party(stack: contextlib.ExitStack, url: str, size: int, meter: Meter) -> Program:
    """Consoles in a process of their own."""
    party = stack.enter_context(_program("scale_consoles", url, size))
    meter.add("consoles", party)
    expect(party.line(), "ready", "consoles")
    return party


def _wait(party: Program, agent: Program, waits: str, does: str) -> None:
    """Let the consoles wait for what the agent then does."""
    expect(party.ask(waits), "waiting", "consoles")
    expect(agent.ask(does), "done", "the agent")
    _done(party.line())


def _done(line: str) -> None:
    expect(line.split()[0], "done", "consoles")


def raise_file_limit() -> None:
    """Allow as many open files as possible, here and in processes that are started."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def main() -> None:
    """Measure and report."""
    options = parser("How costs grow with sizes.")
    options.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS), metavar="NAME", help=", ".join(ROWS))
    options.add_argument("--factor", type=float, default=1.0, metavar="N", help="of all sizes (default: %(default)s)")
    options.add_argument("--picture", type=Path, metavar="FILE", help="draw the curves, as SVG")
    arguments = options.parse_args()
    raise_file_limit()
    figures: list[Figure] = []
    measured: dict[str, list[Step]] = {}
    for name in arguments.rows:
        row = ROWS[name]
        steps = [step for size in row.sizes for step in row.steps(max(1, round(size * arguments.factor)))]
        measured[name] = steps
        for one in dict.fromkeys(step.name for step in steps):
            figures += figures_of([step for step in steps if step.name == one])
    if arguments.picture is not None:
        from scale_picture import draw  # imported here, so that the figures need no matplotlib

        draw(measured, arguments.picture)
    report(figures, arguments.json)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
