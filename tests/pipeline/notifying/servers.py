"""Real servers on ports of the system's choice: HTTP and SMTP, which keep what they get."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import attrs
from aiosmtpd.controller import UnthreadedController
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session


@attrs.define
class HttpLog:
    """What a server got, and what it answers.

    Attributes:
        url: of the server.
        requests: path, headers and JSON.
        accepted: JSON of the requests that were answered with 200.
        answers: statuses of the next answers; 200 after them.
    """

    url: str = ""
    requests: list[tuple[str, dict[str, str], Any]] = attrs.field(factory=list)
    accepted: list[Any] = attrs.field(factory=list)
    answers: list[int] = attrs.field(factory=list)

    @property
    def contents(self) -> list[Any]:
        return [content for _, _, content in self.requests]


@contextmanager
def http_server(context: ssl.SSLContext | None = None) -> Iterator[HttpLog]:
    log = HttpLog()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            content = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            log.requests.append((self.path, dict(self.headers), content))  # before the answer, which tests wait for
            status = log.answers.pop(0) if log.answers else 200
            if status == 200:
                log.accepted.append(content)
            body = b"" if status == 200 else b"the reason\n"
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    log.url = f"{'http' if context is None else 'https'}://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield log
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@attrs.define
class MailLog:
    """What a server got, and what it answers.

    Attributes:
        port: of the server.
        mails: sender, recipients and the mail.
        logins: user and password.
        refusals: answers to the next mails.
        strangers: addresses that are refused.
    """

    port: int = 0
    mails: list[tuple[str, list[str], EmailMessage]] = attrs.field(factory=list)
    logins: list[tuple[str, str]] = attrs.field(factory=list)
    refusals: list[str] = attrs.field(factory=list)
    strangers: set[str] = attrs.field(factory=set)

    async def handle_RCPT(
        self, _server: SMTP, _session: Session, envelope: Envelope, address: str, _options: list[str]
    ) -> str:
        if address in self.strangers:
            return "550 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server: SMTP, _session: Session, envelope: Envelope) -> str:
        if self.refusals:
            return self.refusals.pop(0)
        assert isinstance(envelope.content, bytes)
        mail = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(mail, EmailMessage)
        self.mails.append((envelope.mail_from or "", [str(to) for to in envelope.rcpt_tos], mail))
        return "250 OK"

    def authenticate(
        self, _server: SMTP, _session: Session, _envelope: Envelope, _mechanism: str, data: object
    ) -> AuthResult:
        assert isinstance(data, LoginPassword)
        self.logins.append((data.login.decode(), data.password.decode()))
        return AuthResult(success=data.password == b"secret", handled=False)


@contextmanager
def smtp_server(context: ssl.SSLContext | None = None, *, login: bool = False) -> Iterator[MailLog]:
    log = MailLog()
    loop = asyncio.new_event_loop()
    controller = UnthreadedController(
        log, "127.0.0.1", 0, loop=loop, tls_context=context, require_starttls=context is not None,
        authenticator=log.authenticate, auth_required=login, auth_require_tls=context is not None,
    )  # fmt: skip
    controller.begin()  # type: ignore[no-untyped-call]
    server = controller.server
    assert isinstance(server, asyncio.Server)
    log.port = server.sockets[0].getsockname()[1]
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield log
    finally:
        asyncio.run_coroutine_threadsafe(_end(server), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


async def _end(server: asyncio.Server) -> None:
    server.close()
    rest = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)
