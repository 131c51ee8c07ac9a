"""A session of many agents and objects through restarts of its broker: is everything right again after each?

Runs a broker and the agents as processes of their own, and in this one a `Session` with a managed connection and an
asynchronous client that follows all objects. In each round objects change, come and go, the broker is ended (killed in
every second round), more objects change while it is away, and it is started again. Then both consoles must show
exactly what the agents have. Prints a line per round, and at the end what grew.

    python bench/soak_restarts.py                                   # 24 agents, 10 000 objects, 20 restarts
    python bench/soak_restarts.py --agents 4 --objects 400 --restarts 3
    python bench/soak_restarts.py --burst 3                         # each restart hits consoles busy with the last

Exit code 0 when everything was right, 1 when not.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import IO, ClassVar
from uuid import UUID

import psutil

from qmf.agent import Agent, Attribute, CounterAttribute, ManagedObject
from qmf.console import Agent as SeenAgent
from qmf.console import Console, LoopThread, Session
from qmf.console.aio import Client, Follow, Missed, RemoteObject
from qmf.errors import QmfError
from qmf.schema import TYPES, Access, ClassSchema, Property, Statistic

PACKAGE = "org.example.soak"

#: Seconds after which a console that is still wrong counts as wrong for good.
WAIT_LIMIT = 120.0

#: What the agents have or a console shows: label and count, by agent and name.
State = dict[str, tuple[str, int]]


class Tank(ManagedObject):
    """What the agents have."""

    _qmf_schema_: ClassVar[ClassSchema] = ClassSchema(
        package=PACKAGE,
        name="Tank",
        hash=UUID(int=0x50AC),
        properties=(
            Property(name="name", type=TYPES["sstr"], access=Access.RC, index=True),
            Property(name="label", type=TYPES["sstr"]),
        ),
        statistics=(Statistic(name="strokes", type=TYPES["count64"]),),
    )

    name = Attribute[str]("name")
    label = Attribute[str]("label")
    strokes = CounterAttribute("strokes")

    def __init__(self, *, name: str) -> None:
        super().__init__(name=name)


# -- the process with the agents


async def run_agents(url: str, agents: int, objects: int) -> None:
    """Agents that do what they are told on standard input: `change SEED`, `state`, `end`."""
    made = [
        Agent(url, vendor="example.org", product="soak", instance=str(number), epoch=1, interval=1.0)
        for number in range(agents)
    ]
    tanks: dict[str, tuple[Agent, Tank]] = {}
    names = iter(range(10**9))

    def add(agent: Agent) -> None:
        tank = Tank(name=f"tank-{next(names)}")
        agent.add(tank)
        tank.label = "new"
        tanks[tank.name] = (agent, tank)

    for number in range(objects):
        add(made[number % agents])
    await asyncio.gather(*(agent.start() for agent in made))
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    print("ready", flush=True)
    while (line := (await reader.readline()).decode().split()) and line[0] != "end":
        if line[0] == "change":
            chance = random.Random(int(line[1]))
            for name in chance.sample(sorted(tanks), max(len(tanks) // 50, 3)):
                agent, tank = tanks[name]
                match chance.randrange(10):
                    case 0:
                        agent.remove(tank)
                        del tanks[name]
                        add(agent)
                    case 1 | 2:
                        tank.label = f"label {line[1]}"
                    case _:
                        tank.strokes.inc(chance.randrange(1, 9))
        state = {f"{agent.name}/{name}": (tank.label, tank.strokes.value) for name, (agent, tank) in tanks.items()}
        print(json.dumps(state) if line[0] == "state" else "done", flush=True)
    await asyncio.gather(*(agent.close() for agent in made))


# -- the process with the consoles


class Worker:
    """A process that answers lines with lines."""

    def __init__(self, *args: str) -> None:
        self._process = subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in: IO[str] = self._process.stdin
        self._out: IO[str] = self._process.stdout

    def read(self) -> str:
        """The next line."""
        line = self._out.readline()
        if not line:
            raise SystemExit(f"{self._process.args!r} ended by itself")
        return line.strip()

    def ask(self, line: str) -> str:
        """Say a line, and the answer to it."""
        self._in.write(line + "\n")
        self._in.flush()
        return self.read()

    def end(self, number: int = signal.SIGTERM) -> None:
        """Send a signal and wait."""
        self._process.send_signal(number)
        self._process.wait()
        self._in.close()
        self._out.close()


class Counting(Console):
    """Counts callbacks, and keeps the agents that are there."""

    def __init__(self) -> None:
        self.calls: dict[str, int] = {}
        self.agents: set[str] = set()

    def _count(self, name: str) -> None:
        self.calls[name] = self.calls.get(name, 0) + 1

    def connected(self) -> int:
        """1 while there is a connection, by the callbacks."""
        return self.calls.get("brokerConnected", 0) - self.calls.get("brokerDisconnected", 0)

    def brokerConnected(self, *_: object) -> None:
        self._count("brokerConnected")

    def brokerDisconnected(self, *_: object) -> None:
        self._count("brokerDisconnected")

    def newAgent(self, agent: SeenAgent) -> None:
        self.agents.add(agent.getAgentBank())

    def delAgent(self, agent: SeenAgent) -> None:
        self.agents.discard(agent.getAgentBank())

    def objectProps(self, *_: object) -> None:
        self._count("objectProps")

    def objectStats(self, *_: object) -> None:
        self._count("objectStats")


class Following:
    """An asynchronous client on a thread of its own that follows all tanks and reads every change."""

    def __init__(self, url: str) -> None:
        self.changes = 0
        self.missed = 0
        self._loop = LoopThread("soak-follow")
        self._client = Client(url, timeout=30, data=False)
        self._client.listen(self._notified)
        self._follow: Follow[RemoteObject] = self._loop.run(self._start())
        self._reading = self._loop.run(self._begin())

    def state(self) -> State:
        """What is followed now."""

        async def look() -> State:
            return {f"{obj.agent}/{obj['name']}": (obj["label"], obj["strokes"]) for obj in self._follow}

        return self._loop.run(look())

    def sources(self) -> dict[str, int]:
        """How many agents are followed in which way."""
        found = [source.value for source in self._follow.sources.values()]
        return {name: found.count(name) for name in sorted(set(found))}

    def close(self) -> None:
        async def end() -> None:
            await self._client.close()
            await self._reading

        self._loop.run(end())
        self._loop.stop()

    async def _start(self) -> Follow[RemoteObject]:
        await self._client.open()
        follow = self._client.follow("tank", package=PACKAGE, interval=1.0)
        await follow.__aenter__()
        return follow

    async def _begin(self) -> asyncio.Task[None]:
        return asyncio.get_running_loop().create_task(self._read())

    async def _read(self) -> None:
        async for _ in self._follow:
            self.changes += 1

    def _notified(self, news: object) -> None:
        if isinstance(news, Missed):
            self.missed += news.count


def soak(options: argparse.Namespace, restarts: int) -> bool:
    """Run everything; True when it was right."""
    agents, objects, burst = options.agents, options.objects, options.burst
    broker, url = start_broker("0")
    sizes = ["--agents", str(agents), "--objects", str(objects), *["--verbose"] * options.verbose]
    worker = Worker(sys.executable, __file__, "--role", "agents", "--url", url, *sizes)
    worker.read()
    console = Counting()
    session = Session(console, manageConnections=True)
    session.addBroker(url, sessTimeout=30)
    following = Following(url)
    wrong: list[str] = []
    usage = [measure()]
    longest = 0.0
    chance = random.Random(options.seed)
    for number in range(restarts + 1):
        for again in range(burst if number else 0):
            if again:
                time.sleep(chance.uniform(0.3, 1.5))
            worker.ask(f"change {chance.getrandbits(30)}")
            broker.end(signal.SIGKILL if number % 2 else signal.SIGTERM)
            worker.ask(f"change {chance.getrandbits(30)}")
            broker, _ = start_broker(url.rpartition(":")[2])
        begin = time.monotonic()
        truth: State = {name: (label, count) for name, (label, count) in json.loads(worker.ask("state")).items()}
        looks: list[tuple[str, Callable[[], int] | Callable[[], State], int | State]] = [
            ("connections", console.connected, 1),
            ("agents", lambda: len(console.agents), agents),
            ("getObjects", lambda: asked(session), truth),
            ("follow", following.state, truth),
        ]
        faults, times = [], []
        for what, look, right in looks:
            faults.append(wait(what, look, right))
            times.append(f"{what} {time.monotonic() - begin:.1f}")
        wrong += [f"round {number}: {fault}" for fault in faults if fault]
        took = time.monotonic() - begin
        longest = max(longest, took)
        usage.append(measure())
        print(
            f"round {number:2}: {len(truth)} objects of {len(console.agents)} agents right after {took:5.1f} s "
            f"({', '.join(times)}), {following.changes} changes, {usage[-1][0]} MB"
            + "".join(f"\n  WRONG {fault}" for fault in faults if fault),
            flush=True,
        )
    print(f"callbacks: {console.calls}; followed by {following.sources()}; missed publications: {following.missed}")
    print(f"memory, threads, descriptors: first {usage[1]}, last {usage[-1]}; longest round {longest:.1f} s")
    following.close()
    session.close()
    worker.ask("state")
    worker.end()
    broker.end()
    if threading.active_count() > 1:
        wrong.append(f"threads left: {[thread.name for thread in threading.enumerate()]}")
    summary = f"{agents} agents, {objects} objects, {restarts * burst} restarts"
    print(f"{'WRONG' if wrong else 'right'}: {summary}", *wrong, sep="\n  ")
    return not wrong


def start_broker(port: str) -> tuple[Worker, str]:
    """A broker process and its URL."""
    deadline = time.monotonic() + WAIT_LIMIT
    while True:
        worker = Worker(sys.executable, "-m", "qmf.broker", "--port", port, "--no-management")
        try:
            return worker, worker.read().removeprefix("Listening on ")
        except SystemExit:  # the port of the one before is not free yet
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def asked(session: Session) -> State:
    """What `getObjects` returns."""
    found = session.getObjects(_class="tank", _package=PACKAGE, _timeout=30)
    return {f"{obj.getAgent().getAgentBank()}/{obj.name}": (obj.label, obj.strokes) for obj in found}  # type: ignore[union-attr]


def wait(what: str, look: Callable[[], int] | Callable[[], State], right: int | State) -> str:
    """Wait until something looks right; what is wrong with it, or nothing."""
    deadline = time.monotonic() + WAIT_LIMIT
    shown = ""
    while time.monotonic() < deadline:
        try:
            seen = look()
        except QmfError as error:  # while the broker is away, questions fail
            shown = str(error)
        else:
            if seen == right:
                return ""
            shown = difference(seen, right)
        time.sleep(0.1)
    return f"{what}: {shown}"


def difference(seen: int | State, right: int | State) -> str:
    """How two states differ, in short."""
    if isinstance(seen, int) or isinstance(right, int):
        return f"{seen}, not {right}"
    missing, surplus = right.keys() - seen.keys(), seen.keys() - right.keys()
    other = [name for name in right.keys() & seen.keys() if right[name] != seen[name]]
    samples = [f"{name}: {seen[name]}, not {right[name]}" for name in other[:3]]
    return f"{len(missing)} missing, {len(surplus)} too many, {len(other)} different {samples}"


def measure() -> tuple[int, int, int]:
    """Megabytes, threads and descriptors of this process."""
    process = psutil.Process()
    return process.memory_info().rss // 2**20, process.num_threads(), process.num_fds()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    parser = argparse.ArgumentParser(description="Many agents and objects through restarts of their broker.")
    parser.add_argument("--agents", type=_positive, default=24, help="agents (%(default)s)")
    parser.add_argument(
        "--objects", type=_positive, default=10_000, help="objects of all agents together (%(default)s)"
    )
    parser.add_argument("--restarts", type=_positive, default=20, help="restarts of the broker (%(default)s)")
    parser.add_argument(
        "--burst", type=_positive, default=1, metavar="N", help="of these before each look (%(default)s)"
    )
    parser.add_argument("--seed", type=int, default=1, help="for what changes (%(default)s)")
    parser.add_argument("--verbose", action="store_true", help="log what happens to standard error")
    parser.add_argument("--role", choices=["all", "agents"], default="all", help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    logging.basicConfig(
        level=logging.INFO if options.verbose else logging.ERROR, format="%(asctime)s %(process)d %(name)s: %(message)s"
    )
    if options.role == "agents":
        asyncio.run(run_agents(options.url, options.agents, options.objects))
        return 0
    restarts = -(-options.restarts // options.burst)
    return 0 if soak(options, restarts) else 1


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
