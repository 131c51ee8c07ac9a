"""Server and broker are killed between every two steps: nothing acknowledged returns, nothing else is lost.

A client does what the chapter tells it to: it follows links, posts again where it has no answer, and takes the link of
a refusal. The processes are real ones, and are killed by SIGKILL.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from support.processes import Process, command
from support.proxy import Proxy

from qmf.messaging import Connection, Empty

pytestmark = pytest.mark.slow

QUEUE = "orders"
#: Starts servers of `qmf-web` without its pages.
_WEB = Path(__file__).with_name("web_without_pages.py")


class Servers:
    """A broker and a web server, of which some are killed again and again."""

    def __init__(self, folder: Path, killed: str, starter: Process) -> None:
        self._folder = folder
        self._killed = killed
        self._stack = contextlib.ExitStack()
        self._broker: Process | None = None
        self._starter = starter
        self._web: str | None = None  # its process
        self._proxy: Proxy | None = None
        self.broker_url = ""
        self._web_url = ""
        self._http = self._stack.enter_context(httpx.Client(timeout=60))

    def __enter__(self) -> Servers:
        self._start_broker()
        self._proxy = self._stack.enter_context(Proxy(self.broker_url))
        with Connection.establish(self.broker_url, timeout=30) as connection:
            sender = connection.session().sender(f"{QUEUE}; {{create: always, node: {{type: queue, durable: True}}}}")
            sender.close()
        self._start_web()
        return self

    def __exit__(self, *_: object) -> None:
        self._kill_web()
        if self._broker is not None:
            self._broker.end(signal.SIGKILL)
        self._stack.close()

    def _start_broker(self) -> None:
        folder = str(self._folder / "broker")
        self._broker = Process(command("qmf-broker"), "--port", "0", "--data-dir", folder, "--no-management")
        self.broker_url = self._broker.wait_for("Listening on").split()[-1]
        if self._proxy is not None:
            self._proxy.redirect(self.broker_url)

    def _start_web(self) -> None:
        assert self._proxy is not None
        self._starter.write(f"start {self._proxy.url}")
        self._web = self._starter.wait_for("Process ").split()[-1]
        self._web_url = self._starter.wait_for("Open http").split()[-1]

    def _kill_web(self) -> None:
        if self._web is not None:
            self._starter.write(f"kill {self._web}")
            self._starter.wait_for(f"Ended {self._web}")
            self._web = None

    def kill(self) -> None:
        """Kill what is to be killed, and start it again."""
        if "web" in self._killed:
            self._kill_web()
        if "broker" in self._killed:
            assert self._broker is not None
            assert self._proxy is not None
            self._broker.end(signal.SIGKILL)
            self._proxy.cut()
            self._start_broker()
        if "web" in self._killed:
            self._start_web()

    def request(self, method: str, url: str, **options: object) -> httpx.Response:
        """A request to the server as it runs now: the port differs from that of the links."""
        return self._http.request(method, httpx.URL(self._web_url).join(httpx.URL(url).raw_path.decode()), **options)  # type: ignore[arg-type]

    def post(self, url: str, **options: object) -> httpx.Response:
        return self.request("POST", url, **options)

    def pull(self, link: str) -> httpx.Response:
        """Pull, by the link of the refusal if this one is refused; wait for a message."""
        answer = self.post(link, headers={"Accept-Wait": "30"})
        if answer.status_code == 412:
            name = next(name for name in ("msg-consume-next", "msg-acknowledge-next") if name in answer.headers)
            answer = self.post(answer.headers[name], headers={"Accept-Wait": "30"})
        return answer

    def left(self, count: int) -> list[bytes]:
        """What is in the queue, or comes back to it when the server's connection ends; waits for `count` messages."""
        self._kill_web()
        found: list[bytes] = []
        with Connection.establish(self.broker_url, timeout=30) as connection:
            session = connection.session()
            receiver = session.receiver(QUEUE)
            with contextlib.suppress(Empty):
                while True:
                    found.append(receiver.fetch(timeout=30 if len(found) < count else 0).content)
            session.acknowledge()
        return found


@pytest.fixture(scope="module")
def starter() -> Iterator[Process]:
    """Starts web servers as forks of itself."""
    process = Process(sys.executable, str(_WEB), stdin=subprocess.PIPE)
    yield process
    process.end()


@pytest.fixture(params=["web", "broker", "web and broker"])
def servers(request: pytest.FixtureRequest, tmp_path: Path, starter: Process) -> Iterator[Servers]:
    with Servers(tmp_path, request.param, starter) as servers:
        yield servers


def create(servers: Servers, *bodies: str) -> None:
    """Durable messages, with ids: so a repeated post would not send one twice."""
    for body in bodies:
        created = servers.post(f"/queues/{QUEUE}/create/{body}?durable=true", content=body.encode())
        assert created.status_code == 201


def test_auto_acknowledge(servers: Servers) -> None:
    create(servers, "1", "2", "3")
    servers.kill()
    create(servers, "2", "3")  # known, so not sent again
    servers.kill()
    created = servers.post(f"/queues/{QUEUE}/pull-consumers")
    link, received = created.headers["msg-consume-next"], []
    servers.kill()
    for _ in range(3):
        answer = servers.pull(link)
        assert answer.status_code == 200
        received.append(answer.content)
        link = answer.headers["msg-consume-next"]
        servers.kill()
    answer = servers.post(link)
    if answer.status_code == 412:
        answer = servers.post(answer.headers["msg-consume-next"])
    assert answer.status_code == 503
    state = servers.request("GET", created.headers["Location"])
    assert "msg-consume-next" in state.headers
    servers.kill()
    assert servers.request("DELETE", created.headers["Location"]).status_code == 204
    assert received == [b"1", b"2", b"3"]
    assert servers.left(0) == []


def test_acknowledgement(servers: Servers) -> None:
    create(servers, "1", "2", "3")
    created = servers.post(f"/queues/{QUEUE}/pull-consumers", data={"autoAck": "false"})
    link = created.headers["msg-acknowledge-next"]
    servers.kill()

    # Delivered, and not acknowledged when all is lost: it comes again, and the old link can't acknowledge it.
    answer = servers.pull(link)
    assert answer.content == b"1"
    servers.kill()
    refused = servers.post(answer.headers["msg-acknowledgement"], data={"acknowledge": "true"})
    assert refused.status_code == 412
    servers.kill()
    answer = servers.pull(refused.headers["msg-acknowledge-next"])
    assert answer.content == b"1"

    # Acknowledged: it never returns.
    settled = servers.post(answer.headers["msg-acknowledgement"], data={"acknowledge": "true"})
    assert settled.status_code == 200
    servers.kill()

    # Given back: it comes again.
    answer = servers.pull(settled.headers["msg-acknowledge-next"])
    assert answer.content == b"2"
    settled = servers.post(answer.headers["msg-acknowledgement"], data={"acknowledge": "false"})
    assert settled.status_code == 200
    servers.kill()
    answer = servers.pull(settled.headers["msg-acknowledge-next"])
    assert answer.content == b"2"
    settled = servers.post(answer.headers["msg-acknowledgement"], data={"acknowledge": "true"})
    assert settled.status_code == 200
    servers.kill()

    state = servers.request("GET", created.headers["Location"])
    answer = servers.pull(state.headers["msg-acknowledge-next"])
    assert answer.content == b"3"
    servers.kill()
    assert servers.request("DELETE", created.headers["Location"]).status_code == 204
    assert servers.left(1) == [b"3"]
