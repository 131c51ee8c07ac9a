"""1,000 open event streams: seconds until each has an event, events per second to all of them, memory of the server.

The agent raises events; each stream gets each. The limit of the peer is one stream alone, in the same run.

    python bench/web_streams.py [--json FILE] [--streams N] [--events N]
"""

from __future__ import annotations

import asyncio
import contextlib
import resource
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

from figures import Figure, parser, report
from processes import Program, own_agent, own_broker, program

#: The line of an event.
_MARK = b"\nevent: event\n"


class Stream:
    """A client of server-sent events, as small as it can be: this process has all of them."""

    def __init__(self) -> None:
        self.events = 0
        self._rest = b""
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def open(self, url: str) -> None:
        """Ask, and wait for the head of the answer."""
        place = urlsplit(url)
        self._reader, self._writer = await asyncio.open_connection(place.hostname, place.port)
        self._writer.write(f"GET /api/v1/events/stream HTTP/1.1\r\nHost: {place.netloc}\r\n\r\n".encode())
        head = await self._reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in head:
            sys.exit(head.decode())

    async def read(self, events: int) -> None:
        """Read until so many more events have come."""
        assert self._reader is not None
        wanted = self.events + events
        while self.events < wanted:
            data = await self._reader.read(65536)
            if not data:
                sys.exit("the server ended a stream")
            data = self._rest + data
            self.events += data.count(_MARK)
            self._rest = data[1 - len(_MARK) :]  # what may be the begin of a mark

    def close(self) -> None:
        """End."""
        if self._writer is not None:
            self._writer.close()


async def seconds_for(streams: list[Stream], agent: Program, events: int) -> float:
    """Seconds until all streams have got so many events."""
    begin = time.perf_counter()
    asked = asyncio.to_thread(agent.ask, f"events {events}")
    await asyncio.gather(asked, *(stream.read(events) for stream in streams))
    return time.perf_counter() - begin


async def measure(url: str, web: Program, agent: Program, count: int, events: int) -> list[Figure]:
    """The figures."""
    alone = Stream()
    await alone.open(url)
    await seconds_for([alone], agent, 10)
    one = await seconds_for([alone], agent, events)
    alone.close()
    before = web.memory()
    streams = [Stream() for _ in range(count)]
    for first in range(0, count, 50):
        await asyncio.gather(*(stream.open(url) for stream in streams[first : first + 50]))
    await seconds_for(streams, agent, 1)
    first_event = await seconds_for(streams, agent, 1)
    cpu = web.cpu()
    many = await seconds_for(streams, agent, events)
    used = web.cpu() - cpu
    memory = web.memory() - before
    for stream in streams:
        stream.close()
    return [
        Figure(f"an event to {count:,} streams", first_event, "s", limit=1.0),
        Figure(
            f"{events} events to {count:,} streams",
            count * events / many,
            "events/s",
            peer="to one stream",
            peer_value=events / one,
        ),
        Figure("  processor time of the server, each", used / (count * events) * 1e6, "us"),
        Figure("  memory of the server, each stream", memory * 1000 / count, "kB", limit=100),
    ]


def main() -> None:
    """Run the benchmark."""
    arguments = parser(__doc__ or "")
    arguments.add_argument("--streams", type=int, default=1000)
    arguments.add_argument("--events", type=int, default=500)
    options = arguments.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4 * options.streams)), hard))
    here = str(Path(__file__).with_name("web_process.py"))
    with own_broker() as (url, _), own_agent(url, 1) as agent, program(sys.executable, here, url) as web:
        figures = asyncio.run(measure(web.line(), web, agent, options.streams, options.events))
    report(figures, options.json)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
