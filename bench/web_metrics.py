"""A scrape of `/metrics`: seconds for 10,000 queues with 54 values, beside what the reference library needs.

Broker, agent and server are processes of their own. The reference, `prometheus_client`, writes as many samples from a
collector in this process; it neither reads them from a broker nor sends them over HTTP.

    python bench/web_metrics.py [--json FILE] [--objects N] [--rounds N]
"""

from __future__ import annotations

import contextlib
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
from figures import Figure, parser, report
from processes import own_agent, own_broker, program
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.openmetrics import exposition
from prometheus_client.registry import Collector

#: Seconds that a scrape of 10,000 queues may take.
LIMIT = 1.0

_ACCEPT = {"accept": "application/openmetrics-text; version=1.0.0", "accept-encoding": "identity"}


class Reference(Collector):
    """As many samples as a scrape has, with labels of the same length."""

    def __init__(self, families: int, objects: int) -> None:
        self._families = families
        vhost = "org.apache.qpid.broker:vhost:bench,/"
        self._labels = [["example.org:bench:1", vhost, f"queue-{number}"] for number in range(objects)]

    def collect(self) -> Iterator[Metric]:
        """See `prometheus_client`."""
        for number in range(self._families):
            family = GaugeMetricFamily(
                f"org_apache_qpid_broker_queue_statistic_{number}_messages",
                "Messages",
                labels=["agent", "vhost_ref", "name"],
            )
            for place, labels in enumerate(self._labels):
                family.add_metric(labels, place)
            yield family


def scrape(client: httpx.Client, **headers: str) -> tuple[float, int]:
    """Seconds of a scrape, and its samples."""
    begin = time.perf_counter()
    answer = client.get("/metrics?class=queue", headers={**_ACCEPT, **headers})
    seconds = time.perf_counter() - begin
    if answer.status_code != 200:
        sys.exit(answer.text)
    return seconds, answer.content.count(b"\norg_apache")


def main() -> None:
    """Run the benchmark."""
    arguments = parser(__doc__ or "")
    arguments.add_argument("--objects", type=int, default=10_000)
    arguments.add_argument("--rounds", type=int, default=5)
    options = arguments.parse_args()
    here = str(Path(__file__).with_name("web_process.py"))
    with (
        own_broker() as (url, _),
        own_agent(url, options.objects),
        program(sys.executable, here, url) as web,
        httpx.Client(base_url=web.line(), timeout=120) as client,
    ):
        scrape(client)  # begins to follow
        plain, used, packed = [], [], []
        samples = 0
        for _ in range(options.rounds):
            before = web.cpu()
            seconds, samples = scrape(client)
            plain.append(seconds)
            used.append(web.cpu() - before)
            packed.append(scrape(client, **{"accept-encoding": "gzip"})[0])
        if samples < 40 * options.objects:
            sys.exit(f"only {samples} samples came")
    registry = CollectorRegistry()
    registry.register(Reference(samples // options.objects, options.objects))
    begin = time.perf_counter()
    exposition.generate_latest(registry)  # type: ignore[no-untyped-call]
    reference = time.perf_counter() - begin
    name = f"{options.objects:,} queues, {samples:,} series"
    report(
        [
            Figure(f"scrape, {name}", statistics.median(plain), "s", limit=LIMIT * options.objects / 10_000),
            Figure("  compressed", statistics.median(packed), "s"),
            Figure(
                "  processor time of the server",
                statistics.median(used),
                "s",
                peer="prometheus_client, the text alone",
                peer_value=reference,
                at_most=0.5,
            ),
        ],
        options.json,
    )


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
