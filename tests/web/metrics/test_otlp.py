"""Metrics and events by OTLP, as a collector receives them."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from support.shelf import store_agent
from support.waiting import until
from support.web import called, memory_application, web_options

from qmf.bus import MemoryExchange
from qmf.web.options import MetricsOptions

pytestmark = pytest.mark.slow


class Collector:
    """Receives what is exported; `refuse` makes it answer with an error."""

    def __init__(self) -> None:
        self.metrics: list[Any] = []
        self.logs: list[Any] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                if self.path == "/v1/metrics":
                    collector.metrics.append(ExportMetricsServiceRequest.FromString(body))
                else:
                    collector.logs.append(ExportLogsServiceRequest.FromString(body))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        """End."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def points(self, name: str) -> list[Any]:
        """The metrics of a name in all that came, with their resource."""
        return [
            (resource.resource, metric)
            for request in self.metrics
            for resource in request.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
        ]


@pytest.fixture
def collector() -> Iterator[Collector]:
    found = Collector()
    yield found
    found.close()


def attributes(of: Any) -> dict[str, str]:
    return {item.key: item.value.string_value for item in of.attributes}


async def test_metrics_and_events_arrive(collector: Collector) -> None:
    exchange = MemoryExchange()
    options = web_options(metrics=MetricsOptions(otlp=collector.url + "/", interval=1))
    begin = "org_example_store_shelf"
    async with store_agent(exchange) as agent:
        shelf: Any = next(obj for obj in agent.agent.objects if getattr(obj, "name", None) == "a/1")
        shelf.waiting.sample(2 * 10**9)
        async with called(memory_application(exchange, options)):
            agent.raise_event("broken", shelf="a/2")
            await until(lambda: collector.points(f"{begin}_sold_items"))
        # The end of the server sends what waits.
        resource, sold = collector.points(f"{begin}_sold_items")[0]
        assert attributes(resource) == {
            "service.namespace": "example.org",
            "service.name": "store",
            "service.instance.id": "1",
            "qmf.agent": "example.org:store:1",
        }
        assert sold.unit == "{items}"
        assert sold.sum.is_monotonic
        assert {attributes(point)["name"]: point.as_int for point in sold.sum.data_points} == {
            "a/0": 0,
            "a/1": 10,
            "a/2": 20,
        }
        for which in ("min", "max", "mean"):
            (_, waiting), *_ = collector.points(f"{begin}_waiting_{which}_seconds")
            # Where nobody waited, there is no time.
            ((name, value),) = ((attributes(item)["name"], item.as_double) for item in waiting.gauge.data_points)
            assert (name, value) == ("a/1", 2.0)
        # More than a signed integer has.
        (_, limit), *_ = collector.points(f"{begin}_limit_items")
        assert limit.gauge.data_points[0].as_double == 2.0**63
        (logs,) = collector.logs
        (record,) = logs.resource_logs[0].scope_logs[0].log_records
        assert (record.severity_text, record.severity_number) == ("error", 17)
        assert record.body.string_value == "org.example.store:broken shelf=a/2"
        assert attributes(record) == {"qmf.argument.shelf": "a/2"}


async def test_a_collector_that_is_away_does_no_harm() -> None:
    exchange = MemoryExchange()
    options = web_options(metrics=MetricsOptions(otlp="http://127.0.0.1:1", interval=1))
    async with store_agent(exchange), called(memory_application(exchange, options)) as http:
        assert (await http.get("/metrics")).status_code == 200
