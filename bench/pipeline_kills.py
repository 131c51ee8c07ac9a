"""Kill -9 at random moments: what do a recorder, and a job that raises alerts, lose or repeat?

The first part kills recorders of a host agent and of an agent that counts, while another process optimizes the lake,
drops old days and is killed as well. Then no row may be there twice, no number may be missing, each kill must have its
row in `gaps`, and of what was raised before a kill only the last interval may be missing.

The second part kills a job that raises an alert for each event, on the bus and at a webhook, while a recorder writes
the events into the lake. Then each event must have raised one alert in the table; on the bus each alert must have been
raised once, but for those with the mark `again`; the webhook must have received each, and only what was under way at a
kill twice.

    python bench/pipeline_kills.py                                  # 50 recorders, and 8 jobs with 2,200 alerts
    python bench/pipeline_kills.py --recorders 3 --jobs 2 --alerts 200

Exit code 0 when everything was right, 1 when not.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from uuid import UUID

import attrs

from qmf.agent import Agent, Event
from qmf.broker import EmbeddedBroker
from qmf.console import Broker, Console, Session
from qmf.console import Event as Heard
from qmf.hostagent import EmbeddedHostAgent, ProcessSelection, Settings
from qmf.pipeline import DeltaLake
from qmf.pipeline.correlate.alert_table import alerts
from qmf.pipeline.maintenance.checking import LakeCheck
from qmf.pipeline.runners.process import ProcessRunner
from qmf.schema import TYPES, Argument, EventSchema

PROGRAM = "import sys; from qmf.pipeline.cli import main; sys.exit(main())"

#: Maintains a lake for ever.
MAINTENANCE = """
import sys
from qmf.pipeline.cli import main
while True:
    for command in (["optimize"], ["retain", "--days", "1", "--yes"]):
        main([*command, "--lake", sys.argv[1]])
"""

RULES = """
[counted]
kind = "count"
event = "counted"
by = ["number"]
at_least = 1
within = "10h"

[route]
receiver = "hook"
group_by = "..."
group_wait = 0
group_interval = 0

[[receiver]]
name = "hook"
webhook = {url = "URL"}
bus = true
"""

#: Seconds to wait for anything.
WAIT_LIMIT = 300.0


@attrs.frozen(kw_only=True)
class Counted(Event):
    """One of many events, with its number."""

    number: int

    _qmf_schema_ = EventSchema(
        package="org.example.kills",
        name="counted",
        hash=UUID(int=3),
        arguments=(Argument(name="number", type=TYPES["uint32"]),),
    )


class Job:
    """A subcommand that is killed."""

    def __init__(self, *arguments: str, program: str = PROGRAM) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.lines: list[str] = []
        self._new = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait_for(self, text: str, count: int = 1) -> None:
        """Wait until so many lines begin with a text."""
        with self._new:
            if not self._new.wait_for(lambda: sum(line.startswith(text) for line in self.lines) >= count, WAIT_LIMIT):
                raise SystemExit(f"no line {text!r}: {self.lines[-5:]}")

    def is_over(self) -> bool:
        """True if it has ended by itself."""
        return self._process.poll() is not None

    def kill(self) -> float:
        """Kill it; the time of that."""
        if self.is_over():
            raise SystemExit(f"it ended with {self._process.returncode}: {self.lines[-5:]}")
        at = time.time()
        self._process.kill()
        self._join()
        return at

    def end(self) -> int:
        """End it in order; its exit code."""
        self._process.terminate()
        self._join()
        return self._process.returncode

    def _join(self) -> None:
        self._process.wait(WAIT_LIMIT)
        self._reader.join(WAIT_LIMIT)

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as stream:
            for line in stream:
                with self._new:
                    self.lines.append(line.rstrip())
                    self._new.notify_all()


class CountingAgent:
    """An agent that raises numbered events at a steady rate until it is stopped."""

    def __init__(self, url: str, rate: float, limit: int | None = None) -> None:
        self.raised: dict[int, float] = {}
        self._rate, self._limit = rate, limit
        self._running = Agent.run_in_thread(url, vendor="example.org", product="kills", instance="1", interval=1.0)
        self._running.agent.register(Counted)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._count)
        self._thread.start()

    def wait(self) -> None:
        """Until all are raised."""
        self._thread.join()

    def close(self) -> None:
        """End."""
        self._stop.set()
        self._thread.join()
        self._running.close()

    def _count(self) -> None:
        number = 0
        while not self._stop.wait(1 / self._rate) and number != self._limit:
            number += 1
            self.raised[number] = time.time()
            self._running.agent.raise_event(Counted(number=number))


# -- recorders


def kill_recorders(folder: Path, kills: int, interval: float, chance: random.Random) -> list[str]:
    """The first part; what was wrong."""
    lake = DeltaLake(str(folder / "lake"))
    reported: list[int] = []
    times: list[tuple[float, float]] = []
    settings = Settings(interval=interval / 2, instance="kills", selection=ProcessSelection.parse("top:5"))
    with EmbeddedBroker() as broker, EmbeddedHostAgent(broker.url, settings=settings):
        command = ("record", "-b", broker.url, "--lake", lake.url, "--interval", str(interval))
        counter = CountingAgent(broker.url, 100)
        maintenance: Job | None = None
        maintained = 0
        try:
            for number in range(kills + 1):
                recorder = Job(*command)
                recorder.wait_for("Recording ")
                ready = time.time()
                if maintenance is None:
                    recorder.wait_for("Committed ")
                    maintenance = Job(lake.url, program=MAINTENANCE)
                # At any point of its work: also during its first commits, and while it combines files.
                threading.Event().wait(chance.uniform(0, 6 * interval))
                if number == kills:
                    recorder.wait_for("Committed ")
                    code = recorder.end()
                    if code:
                        raise SystemExit(f"the last recorder ended with {code}: {recorder.lines[-5:]}")
                else:
                    times.append((ready, recorder.kill()))
                reported.append(sum(int(line.split()[1]) for line in recorder.lines if line.startswith("Committed ")))
                if chance.random() < 0.2:
                    maintained += sum(line.startswith(("Combined", "Dropped")) for line in maintenance.lines)
                    maintenance.kill()
                    maintenance = Job(lake.url, program=MAINTENANCE)
                print(f"\r{number} recorders killed", end="", flush=True)
        finally:
            counter.close()
            if maintenance is not None:
                maintained += sum(line.startswith(("Combined", "Dropped")) for line in maintenance.lines)
                maintenance.kill()
    print(f"; {maintained} times optimized or dropped beside them")
    return [*wrong_rows(lake, reported), *wrong_losses(lake, counter.raised, times, interval)]


def columns(lake: DeltaLake, path: str, *names: str) -> list[list[Any]]:
    """The values of some columns of a table."""
    table = lake.table(path)
    found = table.dataset(table.snapshot().files).to_table(columns=list(names))
    return [found[name].to_pylist() for name in names]


def wrong_rows(lake: DeltaLake, reported: list[int]) -> Iterator[str]:
    """Rows that are there twice, numbers that are missing, kills without a gap, and whatever `check` finds."""
    numbers = Counter(
        (run, seq) for path in lake.paths() for run, seq in zip(*columns(lake, path, "_run", "_seq"), strict=True)
    )
    runs: dict[str, set[int]] = defaultdict(set)
    for run, seq in numbers:
        runs[run].add(seq)
    twice = sum(count - 1 for count in numbers.values())
    holes = sum(max(found) - len(found) for found in runs.values())
    print(f"{len(numbers):,} rows of {len(runs)} runs: {twice} twice, {holes} numbers missing")
    if twice or holes:
        yield "rows are there twice or missing"
    ordered = [len(found) for _, found in sorted(runs.items())]
    # A run that was killed before its first commit has no rows.
    if sum(ordered) < sum(reported):
        yield f"{sum(reported)} rows were reported, and {sum(ordered)} are there"
    reasons, subjects = columns(lake, "gaps", "reason", "subject")
    print("gaps:", dict(Counter(reasons)))
    killed = [subject for reason, subject in zip(reasons, subjects, strict=True) if reason == "killed"]
    # The gap of a run that was killed before its first commit is that of the run before.
    if len(set(killed)) != len(killed) or set(sorted(runs)[:-1]) - set(killed):
        yield f"{len(runs) - 1} killed runs have rows, and {len(set(killed))} have gaps"
    yield from (f"check: {finding}" for finding in LakeCheck(ProcessRunner(), lake).findings() if finding.is_damage)


def wrong_losses(
    lake: DeltaLake, raised: dict[int, float], times: list[tuple[float, float]], interval: float
) -> Iterator[str]:
    """Events that are missing although they were raised more than an interval before a kill."""
    recorded = Counter(columns(lake, "events/org.example.kills/counted", "number")[0])
    if max(recorded.values()) > 1:
        yield "an event is there twice"
    lost = []
    for ready, killed in times:
        missing = [at for number, at in raised.items() if ready < at < killed and number not in recorded]
        lost.append(killed - min(missing, default=killed))
    lost.sort()
    print(
        f"{len(recorded):,} of {len(raised):,} events recorded; a kill lost those of the last "
        f"{lost[len(lost) // 2]:.2f} s (median), at most {lost[-1]:.2f} s, with an interval of {interval} s"
    )
    # What waited for an interval is lost, and what came while it was being stored.
    if lost[-1] > 2 * interval + 1:
        yield "a kill lost more than an interval, and the time of a commit"


# -- alerts


class Watcher(Console):
    """Counts the alerts on the bus: by id and change, with the mark `again` or without."""

    def __init__(self) -> None:
        self.fresh: Counter[tuple[str, str]] = Counter()
        self.again: Counter[tuple[str, str]] = Counter()

    def event(self, broker: Broker, event: Heard) -> None:  # noqa: ARG002
        """Count an alert."""
        key = event.getClassKey()
        if key is not None and key.getPackageName() == "qmf.pipeline":
            found = event.getArguments()
            (self.again if found["again"] else self.fresh)[key.getClassName(), str(found["alertId"])] += 1


@contextmanager
def webhook() -> Iterator[tuple[str, Counter[str]]]:
    """A server's URL, and how often it received which alert."""
    received: Counter[str] = Counter()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            """Count, and say yes."""
            content = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            received.update(one["labels"]["number"] for one in content["alerts"] if one["status"] == "firing")
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """Killed clients cut their connections."""

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", received
        finally:
            server.shutdown()
            thread.join()


def kill_jobs(folder: Path, kills: int, count: int, chance: random.Random) -> list[str]:
    """The second part; what was wrong."""
    lake, out = str(folder / "lake"), str(folder / "out")
    watcher = Watcher()
    session = Session(watcher)
    with EmbeddedBroker() as broker, webhook() as (url, received):
        (folder / "rules.toml").write_text(RULES.replace("URL", url), encoding="utf-8")
        common = ("--lake", lake, "--rules", str(folder / "rules.toml"), "--out", out, "-b", broker.url)
        session.addBroker(broker.url)
        recorder = Job("record", "-b", broker.url, "--lake", lake, "--interval", "0.5")
        recorder.wait_for("Recording ")
        # All are raised while the jobs are killed: each of them runs for some seconds.
        counter = CountingAgent(broker.url, count / (7 * kills), count)
        try:
            recorder.wait_for("Committed ", 3)
            for number in range(kills):
                job = Job("correlate", *common, "--stream", "--every", "0.2s")
                job.wait_for("Following ")
                threading.Event().wait(chance.uniform(0, 6))
                job.kill()
                print(f"\r{number + 1} jobs killed, {len(received):,} alerts notified", end="", flush=True)
            counter.wait()
            job = Job("correlate", *common, "--stream", "--every", "0.2s")
            job.wait_for("Following ")
            done = until(lambda: len(received) >= count and len(watcher.fresh + watcher.again) >= count)
            if job.end() or not done:
                print(job.lines[-5:])
        finally:
            counter.close()
            recorder.end()
            session.close()
    print()
    return list(wrong_alerts(out, count, kills, received, watcher))


def wrong_alerts(out: str, count: int, kills: int, received: Counter[str], watcher: Watcher) -> Iterator[str]:
    """Alerts that are missing, or there more often than they may be."""
    rows = alerts(out).to_pylist()
    raised = Counter(row["subject"] for row in rows if row["change"] == "raised")
    print(f"{count:,} events: {len(raised):,} alerts in the table, {sum(raised.values()) - len(raised)} of them twice")
    if len(raised) != count or max(raised.values()) > 1:
        yield "alerts are missing in the table, or there twice"
    fresh = {key: number for key, number in watcher.fresh.items() if key[0] == "alertRaised"}
    again = sum(number for key, number in watcher.again.items() if key[0] == "alertRaised")
    on_bus = {id for name, id in watcher.fresh + watcher.again if name == "alertRaised"}
    twice = sum(fresh.values()) - len(fresh)
    print(f"on the bus: {len(on_bus):,} alerts, {twice} of them twice; {again} with the mark `again`")
    if len(on_bus) != count or twice:
        yield "alerts are missing on the bus, or there twice"
    repeated = sum(received.values()) - len(received)
    print(f"at the webhook: {len(received):,} alerts, {repeated} of them again after {kills} kills")
    # At most 50 notifications are under way to one receiver.
    if len(received) != count or repeated > 50 * kills:
        yield "the webhook did not receive some alerts, or received them too often"


def until(condition: Callable[[], bool]) -> bool:
    """Wait; False if it was not true in time."""
    deadline = time.monotonic() + WAIT_LIMIT
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def main() -> int:
    """Kill, and say what was wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--recorders", type=int, default=50, help="recorders that are killed; 0 leaves this part out")
    parser.add_argument("--jobs", type=int, default=8, help="jobs that are killed; 0 leaves this part out")
    parser.add_argument("--alerts", type=int, default=2200)
    parser.add_argument("--interval", type=float, default=0.5, help="seconds between the recorder's commits")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    options = parser.parse_args()
    chance = random.Random(options.seed)
    print(f"seed {options.seed}")
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        for part in ("recorders", "jobs"):
            (Path(name) / part).mkdir()
        if options.recorders:
            wrong += kill_recorders(Path(name) / "recorders", options.recorders, options.interval, chance)
        if options.jobs:
            wrong += kill_jobs(Path(name) / "jobs", options.jobs, options.alerts, chance)
    print("\n".join(f"WRONG: {text}" for text in wrong) or "everything was right")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
