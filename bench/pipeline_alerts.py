"""How long from an event on the bus to the alert on the bus?

An agent raises events; a recorder writes them into a lake; `correlate --stream --raise` finds them, and its agent
publishes the alerts, which a console receives. Broker, recorder and job are processes of their own. Prints the seconds
from event to alert, the seconds until the job follows the lake, and what the job needs while nothing happens.

    python bench/pipeline_alerts.py [--events N] [--interval S] [--every TIME] [--late TIME] [--json FILE]
                                    [-- OPTION of correlate ...]
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from uuid import UUID

import attrs
import psutil

from qmf.agent import Agent, Event
from qmf.broker import EmbeddedBroker
from qmf.console import Broker, Console, Session
from qmf.console import Event as Heard
from qmf.schema import TYPES, Argument, EventSchema

PROGRAM = "import sys; from qmf.pipeline.cli import main; sys.exit(main())"

RULES = '[rang]\nkind = "count"\nevent = "rang"\nby = ["number"]\nat_least = 1\nwithin = "1h"\n'


@attrs.frozen(kw_only=True)
class Rang(Event):
    """An event that raises an alert."""

    number: int

    _qmf_schema_ = EventSchema(
        package="org.example.bench",
        name="rang",
        hash=UUID(int=2),
        arguments=(Argument(name="number", type=TYPES["uint32"]),),
    )


class Watcher(Console):
    """Notes when alerts came."""

    def __init__(self) -> None:
        self.came: dict[str, float] = {}
        self.news = threading.Event()

    def event(self, broker: Broker, event: Heard) -> None:  # noqa: ARG002
        """Note an alert."""
        key = event.getClassKey()
        if key is not None and key.getClassName() == "alertRaised":
            self.came[str(event.getArguments()["subject"])] = time.monotonic()
            self.news.set()


def start(folder: Path, ready: str, *arguments: str) -> subprocess.Popen[str]:
    """Start a subcommand, and wait for a line."""
    command = [sys.executable, "-c", PROGRAM, *arguments]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(ready):
            threading.Thread(target=process.stdout.read, daemon=True).start()
            return process
    sys.exit(f"{arguments[0]} ended with {process.wait()}")


def measure(options: argparse.Namespace) -> dict[str, float]:
    """The figures."""
    watcher = Watcher()
    processes: list[subprocess.Popen[str]] = []
    with tempfile.TemporaryDirectory() as name, EmbeddedBroker() as broker:
        folder = Path(name)
        (folder / "rules.toml").write_text(RULES, encoding="utf-8")
        session = Session(watcher)
        try:
            session.addBroker(broker.url)
            recording = ("record", "-b", broker.url, "--lake", "lake", "--interval", str(options.interval))
            processes.append(start(folder, "Recording", *recording))
            agent = Agent.run_in_thread(broker.url, vendor="bench", product="agent", instance="1", interval=1.0)
            agent.agent.register(Rang)
            begun = time.monotonic()
            job = ("correlate", "--lake", "lake", "--rules", "rules.toml", "--stream", "--every", options.every)
            raising = ("--late", options.late, "--raise", "-b", broker.url)
            processes.append(start(folder, "Following", *job, *raising, *options.more))
            started = time.monotonic() - begun
            warm_up(agent.agent, watcher)
            seconds = []
            for number in range(1, options.events + 1):
                time.sleep(random.uniform(0.5, 2.5))  # at any point of the recorder's interval
                seconds.append(ring(agent.agent, watcher, number))
            usage = psutil.Process(processes[-1].pid)
            family = [usage, *usage.children(recursive=True)]
            before, at = sum(sum(item.cpu_times()[:2]) for item in family), time.monotonic()
            time.sleep(10)
            busy = (sum(sum(item.cpu_times()[:2]) for item in family) - before) / (time.monotonic() - at)
            memory = sum(item.memory_info().rss for item in family) / 2**20
            agent.close()
        finally:
            session.close()
            for process in processes:
                process.terminate()
            for process in processes:
                process.wait(60)
    ordered = sorted(seconds)
    return {
        "events": len(seconds),
        "min_s": ordered[0],
        "median_s": statistics.median(ordered),
        "p95_s": ordered[round(0.95 * (len(ordered) - 1))],
        "max_s": ordered[-1],
        "start_s": started,
        "idle_cores": busy,
        "memory_mb": memory,
    }


def warm_up(agent: Agent, watcher: Watcher) -> None:
    """Raise events until one raises an alert: recorder and job have seen the class then."""
    number = 1_000_000
    while not watcher.came:
        agent.raise_event(Rang(number=number))
        watcher.news.wait(5)
        number += 1


def ring(agent: Agent, watcher: Watcher, number: int) -> float:
    """Raise an event, and wait for its alert; the seconds in between."""
    begun = time.monotonic()
    agent.raise_event(Rang(number=number))
    while str(number) not in watcher.came:
        watcher.news.clear()
        if not watcher.news.wait(120):
            sys.exit(f"no alert for event {number}")
    return watcher.came[str(number)] - begun


def main() -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--events", type=int, default=30)
    parser.add_argument("--interval", type=float, default=1.0, help="seconds between the recorder's commits")
    parser.add_argument("--every", default="1s")
    parser.add_argument("--late", default="0s")
    parser.add_argument("--json", type=Path)
    parser.add_argument("more", nargs="*", help="further options of correlate, after --")
    options = parser.parse_args()
    found = measure(options)
    for name, value in found.items():
        print(f"{name:12} {value:8.2f}")
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=2), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
