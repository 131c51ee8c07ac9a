"""How soon are the first rows there, with 100,000 objects of one agent, and with 10,000 agents?

Each row is a question of a user: a list of the shell, sorted or not; a live screen; a page of REST; a scrape of
`/metrics`. What is measured is the time by the clock until its first rows are there, and the processor time of all who
take part: shell or server, broker and agents. Programs run already, but where "one shot" is said; a server is new for
each of its rows, so that nobody has asked before.

    python bench/first_rows.py [--objects N] [--agents N] [--only WORD] [--json FILE]
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import httpx
import psutil
from figures import Figure, note, parser, report
from processes import COMPILED, Program, own_agent, own_broker, program
from simulated_browser import wait_for_text

from qmf.console.aio import ObjectId
from qmf.web.pages.views.page_urls import agent_url, object_url

#: Seconds that first rows may take.
LIMIT = 1.0
ROUNDS = 3
WAIT_LIMIT = 120.0
#: Seconds between publications of agents of a crowd, and between heartbeats.
INTERVAL = 60.0
_HERE = Path(__file__).resolve().parent
_SHELL = [sys.executable, "-m", "qmf_shell.main"]
#: Of what ends the output of a command.
_END = "^ *Leave; the same"
_CLASS = "org.apache.qpid.broker:queue"
_PAGE = "/objects/org.apache.qpid.broker/queue"


def shell_environment(home: str) -> dict[str, str]:
    """Of a user who has set nothing."""
    own = {"HOME": home, "XDG_STATE_HOME": home, "XDG_CONFIG_HOME": home, "NO_COLOR": "1"}
    return {**os.environ, **own, **COMPILED}


@attrs.frozen
class Answer:
    """How long the first rows took.

    Attributes:
        seconds: by the clock.
        processor: seconds of processor time of the program that was asked, until then.
    """

    seconds: float
    processor: float


class ShellSession:
    """A shell that reads commands from a pipe."""

    def __init__(self, url: str, home: str) -> None:
        command = [*_SHELL, "-b", url, "--timeout", "60", "-f", "-"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=shell_environment(home)
        )
        self._usage = psutil.Process(self._process.pid)
        self._until("help quit", _END)

    def first(self, line: str, row: str) -> Answer:
        """From a command until a line that has a row. Then the rest is read."""
        used, begin = self._used(), time.perf_counter()
        self._until(line, row)
        answer = Answer(time.perf_counter() - begin, self._used() - used)
        self._until("help quit", _END)
        return answer

    def _used(self) -> float:
        times = self._usage.cpu_times()
        return times.user + times.system

    def _until(self, line: str, row: str) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        if not any(re.search(row, text) for text in self._process.stdout):
            sys.exit(f"{line} printed no row like {row}")

    def close(self) -> None:
        """End it, whatever it prints."""
        self._process.kill()
        self._process.communicate()


@contextlib.contextmanager
def shell_session(url: str) -> Iterator[ShellSession]:
    """A shell that has connected."""
    with tempfile.TemporaryDirectory() as home:
        session = ShellSession(url, home)
        try:
            yield session
        finally:
            session.close()


def one_shot(url: str, line: str, row: str) -> Answer:
    """From the start of a shell until its first row."""
    with tempfile.TemporaryDirectory() as home:
        begin = time.perf_counter()
        command = [*_SHELL, "-b", url, "--timeout", "60", "-c", line]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=shell_environment(home)) as process:
            assert process.stdout is not None
            found = any(re.search(row, text) for text in process.stdout)
            took = time.perf_counter() - begin
            process.kill()
            _, _, usage = os.wait4(process.pid, 0)
            process.returncode = 0
    if not found:
        sys.exit(f"{line} printed no row like {row}")
    return Answer(took, usage.ru_utime + usage.ru_stime)


def web(url: str, path: str) -> Answer:
    """The first request to a new server."""
    with program(sys.executable, str(_HERE / "web_process.py"), url) as server:
        address = server.line()
        with httpx.Client(base_url=address, timeout=WAIT_LIMIT) as client:
            client.get("/api/v1/openapi.json")
            used, begin = server.cpu(), time.perf_counter()
            answer = client.get(path)
            took = Answer(time.perf_counter() - begin, server.cpu() - used)
    if answer.status_code != 200:
        sys.exit(f"{path}: {answer.status_code} {answer.text[:200]}")
    return took


def _queue(number: int) -> ObjectId:
    """A queue of the agent."""
    vhost = "org.apache.qpid.broker:vhost:org.apache.qpid.broker:broker:bench,/"
    return ObjectId(f"org.apache.qpid.broker:queue:{vhost},queue-{number}", "example.org:bench:bench")


def page(url: str, path: str, row: str) -> Answer:
    """The first page that a browser gets of a new server, until it shows a row."""
    with program(sys.executable, str(_HERE / "web_process.py"), url, "--pages") as server:
        address = server.line()
        httpx.get(f"{address}/api/v1/openapi.json", timeout=WAIT_LIMIT)
        used, begin = server.cpu(), time.perf_counter()
        asyncio.run(wait_for_text(address, path, row, WAIT_LIMIT))
        return Answer(time.perf_counter() - begin, server.cpu() - used)


def completion(url: str, line: str) -> Answer:
    """From the first Tab after a line in a new session until something is offered."""
    with program(sys.executable, str(_HERE / "completion_process.py"), url) as session:
        session.line()
        used, begin = session.cpu(), time.perf_counter()
        session.ask(line)
        return Answer(time.perf_counter() - begin, session.cpu() - used)


def measure(name: str, ask: Callable[[], Answer], parts: list[Program]) -> list[Figure]:
    """The median of some rounds, by the clock, and what it cost all who took part."""
    before = sum(part.cpu() for part in parts)
    answers = [ask() for _ in range(ROUNDS)]
    used = (sum(part.cpu() for part in parts) - before) / ROUNDS
    own = statistics.median(answer.processor for answer in answers)
    times = ", ".join(f"{answer.seconds:.2f}" for answer in answers)
    note(f"{name}: {times} s; processor time {own:.2f} s, {used:.2f} s of broker and agents")
    return [
        Figure(name, statistics.median(answer.seconds for answer in answers), "s", limit=LIMIT),
        Figure(f"{name}: processor time", own + used, "s"),
    ]


def object_rows(url: str, session: ShellSession, count: int) -> dict[str, Callable[[], Answer]]:
    """The questions about many objects of one agent."""
    row = r"queue-\d+"
    lines = {
        "list limit 10": f"list {_CLASS} limit 10",
        "list sorted limit 10": f"list {_CLASS} sort msgDepth desc limit 10",
        "list where limit 10": f"list {_CLASS} where msgTotalEnqueues > {count // 2} limit 10",
        "list": f"list {_CLASS}",
        "list --json": f"list {_CLASS} --json",
        "top": f"top -c 1 {_CLASS} by msgTotalEnqueues",
        "top -t": f"top -c 1 -t {_CLASS} by msgTotalEnqueues",
        "find": f"find queue-{count - 1}",
    }
    asked: dict[str, Callable[[], Answer]] = {
        f"shell, {name}": functools.partial(session.first, line, row)
        for name, line in lines.items()
        if name not in ("list", "list --json")
    }
    asked |= {f"shell, one shot, {name}": functools.partial(one_shot, url, line, row) for name, line in lines.items()}
    query = "/api/v1/objects?class=queue&package=org.apache.qpid.broker&limit=50"
    asked |= {
        "REST, first page": functools.partial(web, url, query),
        "REST, first page, sorted": functools.partial(web, url, f"{query}&sort=-msgDepth"),
        "Tab after show queue-9": functools.partial(completion, url, "show queue-9"),
        "page of objects": functools.partial(page, url, _PAGE, row),
        "page of objects, sorted": functools.partial(page, url, f"{_PAGE}?sort=-msgTotalEnqueues", row),
        "page of an object": functools.partial(page, url, object_url(_queue(count - 1)), r"msgDepth"),
        "page of classes": functools.partial(page, url, "/classes", rf"{count:,}"),
        "page of events": functools.partial(page, url, "/events", r"events received"),
        "overview": functools.partial(page, url, "/", rf"{count:,}|{count + 2:,}"),
        "/metrics": functools.partial(web, url, "/metrics"),
        "/metrics of the class": functools.partial(web, url, "/metrics?class=queue"),
    }
    return asked


def agent_rows(url: str, session: ShellSession) -> dict[str, Callable[[], Answer]]:
    """The questions about many agents."""
    return {
        "shell, agents": functools.partial(session.first, "agents", r"example.org"),
        "shell, list broker limit 10": functools.partial(session.first, "list broker limit 10", r"amqp|\d"),
        "shell, one shot, agents": functools.partial(one_shot, url, "agents", r"example.org"),
        "shell, one shot, list broker limit 10": functools.partial(one_shot, url, "list broker limit 10", r"amqp|\d"),
        "Tab after list": functools.partial(completion, url, "list "),
        "page of agents": functools.partial(page, url, "/agents", r"example.org:scale"),
        "page of an agent": functools.partial(page, url, agent_url("example.org:scale:7"), r"Heartbeat|heartbeat"),
        "page of classes": functools.partial(page, url, "/classes", r"vhost"),
        "overview": functools.partial(page, url, "/", r"example.org:scale"),
        "REST, agents": functools.partial(web, url, "/api/v1/agents"),
        "REST, first page of a class": functools.partial(web, url, "/api/v1/objects?class=broker&limit=50"),
    }


def raise_file_limit() -> None:
    """Allow as many open files as possible, here and in processes that are started."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def main() -> int:
    """Measure, print, and compare with the limit."""
    options = parser("How soon the first rows are there.")
    options.add_argument("--objects", type=int, default=100_000, help="of one agent (%(default)s); 0 leaves them out")
    options.add_argument("--agents", type=int, default=10_000, help="agents (%(default)s); 0 leaves them out")
    options.add_argument("--only", default="", metavar="WORD", help="rows whose names have this in them")
    chosen = options.parse_args()
    raise_file_limit()
    figures: list[Figure] = []
    with contextlib.ExitStack() as stack:
        if chosen.objects:
            url, broker = stack.enter_context(own_broker())
            agent = stack.enter_context(own_agent(url, chosen.objects))
            session = stack.enter_context(shell_session(url))
            for name, ask in object_rows(url, session, chosen.objects).items():
                if chosen.only in name:
                    figures += measure(f"{name}, {chosen.objects:,} objects", ask, [broker, agent])
    with contextlib.ExitStack() as stack:
        if chosen.agents:
            url, broker = stack.enter_context(own_broker(INTERVAL))
            crowd = stack.enter_context(
                program(sys.executable, str(_HERE / "scale_agents.py"), url, str(chosen.agents), f"{INTERVAL:g}")
            )
            crowd.line()
            session = stack.enter_context(shell_session(url))
            for name, ask in agent_rows(url, session).items():
                if chosen.only in name:
                    figures += measure(f"{name}, {chosen.agents:,} agents", ask, [broker, crowd])
    report(figures, chosen.json)
    return 0 if all(item.reached is not False for item in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
