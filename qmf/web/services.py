"""What the routes and pages stand on: the console, connections for messages, who may, the streams.

Made with the application, opened and closed by its lifespan; everything belongs to the server's event loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from qmf._closable import AsyncClosable
from qmf.bus import Bus
from qmf.connecting import BrokerTarget
from qmf.console.aio import Client
from qmf.messaging.aio import Connection
from qmf.web.access.access import WebAccess
from qmf.web.access.audit import AuditLog
from qmf.web.consoles import WebConsole
from qmf.web.options import WebLimits, WebOptions
from qmf.web.readers.readers import Readers
from qmf.web.scopes import Caller
from qmf.web.sharing import WorkLimit


class WebServices(AsyncClosable):
    """The parts that all routes and pages share.

    Attributes:
        options: of the server.
        access: who may; `access.require(Scope.READ)` is a dependency of routes, `access.streams` counts streams.
        work: what needs time and memory: lists of objects, references, metrics.
        client: the console; open from `open` to `close`.
        readers: what each caller has of the console.
    """

    def __init__(self, options: WebOptions, *, make_bus: Callable[[], Bus] | None = None) -> None:
        """Make the parts; nothing is connected yet.

        Args:
            make_bus: makes the bus of the console; None: as the target says.

        Raises:
            UsersError, TokensError, TlsError: files of the options cannot be used.
        """
        self.options = options
        self.access = WebAccess(options)
        self.work = WorkLimit(options.limits.work, options.limits.waiting_work)
        self.client = Client(
            (make_bus or options.target.make_bus)(),
            domain=options.target.domain,
            timeout=options.timeout,
            data=False,  # what pages and streams follow is bound for them
            discover=True,
        )
        self.readers = Readers(self.client, self.access.rules)

    @property
    def audit(self) -> AuditLog:
        """The log of calls and refusals."""
        return self.access.audit

    @property
    def limits(self) -> WebLimits:
        """How much one client may ask for."""
        return self.options.limits

    async def open(self) -> None:
        """Connect the console.

        Raises:
            ConnectError: no connection; names the URL and the reason.
        """
        await self.client.open()

    async def close(self) -> None:
        """Disconnect. A second call does nothing."""
        await self.readers.close()
        await self.client.close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    def still(self, caller: Caller, console: WebConsole) -> bool:
        """Whether a caller would still be let in, and would have the same console: for what outlives a request."""
        return self.access.still(caller) and self.readers.is_of(console, caller)

    def messaging(self, **options: Any) -> Connection:
        """A connection of the messaging API to the broker, not open yet; its user closes it.

        Args:
            options: more options of `qmf.messaging.aio.Connection`, e.g. ``reconnect=True``.
        """
        return Connection(str(self.options.target.url), **{**messaging_options(self.options.target), **options})


def messaging_options(target: BrokerTarget) -> dict[str, Any]:
    """The options of `qmf.messaging.Connection` for what a target says beyond its URL."""
    files = target.tls
    found: dict[str, Any] = {
        "ssl_trustfile": files.ca and str(files.ca),
        "ssl_certfile": files.cert and str(files.cert),
        "ssl_keyfile": files.key and str(files.key),
        "ssl_skip_hostname_check": files.insecure or None,
        "username": target.url.username,
        "password": target.url.password,
        "token": target.token,
    }
    if files.cert is not None and target.url.username is None and target.token is None:
        found["sasl_mechanisms"] = "EXTERNAL ANONYMOUS"
    return {name: value for name, value in found.items() if value is not None}
