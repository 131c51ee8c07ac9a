"""Objects with all their values over HTTP: `qmf-web` beside Jolokia on Artemis, in turns.

Ours are queues with 54 values of an agent of ours: each request goes over the server and the broker to the agent and
back. Jolokia reads the queues of Artemis inside its process, which have about as many attributes. Artemis is there when
scripts/brokers.py has unpacked it.

    python bench/web_objects.py [--json FILE] [--objects N] [--rounds N]
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
from figures import Figure, note, parser, report
from processes import own_agent, own_broker, program

ROOT = Path(__file__).resolve().parents[1]

#: What is wanted, times what Jolokia reaches.
WANTED = 2.0

_QUEUES = (
    "org.apache.activemq.artemis:broker=*,component=addresses,address=*,subcomponent=queues,routing-type=*,"
    'queue="bench-*"'
)


@contextlib.contextmanager
def own(objects: int) -> Iterator[Callable[[], int]]:
    """A function that reads all objects, and returns how many came."""
    here = str(Path(__file__).with_name("web_process.py"))
    with (
        own_broker() as (url, _),
        own_agent(url, objects),
        program(sys.executable, here, url) as web,
        httpx.Client(base_url=web.line(), timeout=120) as client,
    ):

        def read() -> int:
            answer = client.get(f"/api/v1/objects?class=queue&limit={objects}")
            found = json.loads(answer.content)["objects"]
            if len(found[0]["properties"]) + len(found[0]["statistics"]) != 54:
                sys.exit("the objects lack values")
            return len(found)

        yield read


@contextlib.contextmanager
def jolokia(objects: int) -> Iterator[Callable[[], int] | None]:
    """The same for the queues of an Artemis; None where there is none."""
    sys.path.insert(0, str(ROOT))
    from scripts import brokers
    from scripts.fetching import finish

    home = brokers.CACHE / f"apache-artemis-{brokers.ARTEMIS_VERSION}"
    if not home.exists():
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="qmf-artemis-") as name:
        folder = Path(name)
        port, web = brokers.free_port(), brokers.free_port()
        create = [str(home / "bin" / "artemis"), "create", str(folder / "broker"), "--silent", "--allow-anonymous"]
        create += ["--user=guest", "--password=guest", "--host=127.0.0.1", f"--default-port={port}"]
        create += ["--http-host=127.0.0.1", f"--http-port={web}", "--java-memory=1G", "--no-autotune"]
        create += ["--no-amqp-acceptor", "--no-mqtt-acceptor", "--no-stomp-acceptor", "--no-hornetq-acceptor"]
        create += ["--disable-persistence", "--relax-jolokia"]
        finish(create, folder / "create.log", os.environ, brokers.START)
        command = [str(folder / "broker" / "bin" / "artemis"), "run"]
        with brokers.running(command, folder / "artemis.log", os.environ) as alive:
            brokers.wait_for_amqp(port, alive)
            with httpx.Client(
                base_url=f"http://127.0.0.1:{web}/console/jolokia/",
                auth=("guest", "guest"),
                headers={"Origin": "http://127.0.0.1"},
                timeout=120,
            ) as client:
                _fill(client, objects)

                def read() -> int:
                    answer = client.post("", json={"type": "read", "mbean": _QUEUES})
                    found = json.loads(answer.content)["value"]
                    return len(found)

                yield read


def _fill(client: httpx.Client, objects: int) -> None:
    """Create the queues, as soon as the server of the console is there."""
    end = time.monotonic() + 60
    while True:
        with contextlib.suppress(httpx.HTTPError):
            if client.get("version").status_code == 200:
                break
        if time.monotonic() > end:
            sys.exit("Jolokia did not start")
        time.sleep(0.5)
    (server,) = client.post("", json={"type": "search", "mbean": "org.apache.activemq.artemis:broker=*"}).json()[
        "value"
    ]
    for first in range(0, objects, 500):
        calls = [
            {
                "type": "exec",
                "mbean": server,
                "operation": "createQueue(java.lang.String)",
                "arguments": [json.dumps({"name": f"bench-{n}", "address": f"bench-{n}", "routing-type": "ANYCAST"})],
            }
            for n in range(first, min(first + 500, objects))
        ]
        for answer in client.post("", json=calls).json():
            if answer["status"] != 200:
                sys.exit(f"createQueue: {answer.get('error')}")


def rate(read: Callable[[], int], objects: int) -> float:
    """Objects per second of one round."""
    begin = time.perf_counter()
    found = read()
    seconds = time.perf_counter() - begin
    if found != objects:
        sys.exit(f"{found} objects came, not {objects}")
    return found / seconds


def main() -> None:
    """Run the benchmark."""
    arguments = parser(__doc__ or "")
    arguments.add_argument("--objects", type=int, default=5000)
    arguments.add_argument("--rounds", type=int, default=7)
    options = arguments.parse_args()
    ours: list[float] = []
    theirs: list[float] = []
    with own(options.objects) as read, jolokia(options.objects) as peer:
        for _ in range(options.rounds + 2):
            ours.append(rate(read, options.objects))
            if peer is not None:
                theirs.append(rate(peer, options.objects))
    if peer is None:
        note("no Artemis: scripts/brokers.py unpacks it")
    figure = Figure(
        f"objects over REST, {options.objects:,} with 54 values",
        statistics.median(ours[2:]),  # the first ones learn the schema, and warm Java up
        "objects/s",
        peer="Jolokia on Artemis",
        peer_value=statistics.median(theirs[2:]) if theirs else None,
        at_least=WANTED,
    )
    report([figure], options.json)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
