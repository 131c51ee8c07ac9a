"""The audit log of a broker: who did what on what, from where, and how it ended; to the logger ``qmf.broker.audit``."""

from __future__ import annotations

import logging

from qmf._audit_log import audit_line
from qmf.broker.client_info import ClientInfo
from qmf.broker.nodes.bindings import BindingSpec
from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.observed_clients import BrokerClient, ClientSession
from qmf.broker.nodes.observer import BrokerObserver
from qmf.broker.nodes.queues import Queue
from qmf.broker.operations.policy import OperationRefused
from qmf.broker.operations.principal import LOCAL

#: What is done; the programs of the broker's own process are left out.
log = logging.getLogger("qmf.broker.audit")


class BrokerAudit(BrokerObserver):
    """Writes the lines. Refusals that are repeated at once are counted, not written."""

    def __init__(self) -> None:
        #: The last refusal, and how often it came again.
        self._last: tuple[str, str, str] | None = None
        self._repeated = 0

    def on_connected(self, client: ClientSession) -> None:
        if client.info.domain:  # another broker, to which this one has connected
            self._write(client.info, "peer up", object=client.info.domain)
        else:
            self._write(client.info, "login", container=client.info.container)

    def on_connection_refused(self, info: ClientInfo, reason: str) -> None:
        self._refuse(info.user, info.address, "login", reason)

    def on_disconnected(self, client: ClientSession) -> None:
        if client.info.domain:
            self._write(client.info, "peer down", object=client.info.domain)
        else:
            self._write(client.info, "disconnect")

    def on_connection_revoked(self, client: ClientSession, reason: str) -> None:
        self._write(client.info, "connection", "revoked", reason=reason)

    def on_link_revoked(self, client: ClientSession, link: str, reason: str) -> None:
        self._write(client.info, "link", "revoked", object=link, reason=reason)

    def on_called(self, info: ClientInfo, method: str, name: str, reason: str) -> None:
        if reason:
            self._refuse(info.user, info.address, "call", reason, method=method, object=name)
        else:
            self._write(info, "call", method=method, object=name)

    def on_exchange_declared(self, exchange: Exchange, client: BrokerClient | None) -> None:
        self._change(client, "create exchange", exchange.name)

    def on_exchange_deleted(self, exchange: Exchange, client: BrokerClient | None) -> None:
        self._change(client, "delete exchange", exchange.name)

    def on_queue_declared(self, queue: Queue, client: BrokerClient | None) -> None:
        self._change(client, "create queue", queue.name)

    def on_queue_deleted(self, queue: Queue, client: BrokerClient | None) -> None:
        self._change(client, "delete queue", queue.name)

    def on_bound(self, exchange: Exchange, queue: Queue, spec: BindingSpec, client: BrokerClient | None) -> None:
        self._change(client, "bind", exchange.name, queue=queue.name, key=spec.key)

    def on_unbound(self, exchange: Exchange, queue: Queue, spec: BindingSpec, client: BrokerClient | None) -> None:
        self._change(client, "unbind", exchange.name, queue=queue.name, key=spec.key)

    def on_refused(self, error: OperationRefused) -> None:
        """The policy has refused an operation."""
        principal, operation = error.principal, error.operation
        action = f"{operation.action.value} {operation.object_type.value}"
        properties = {name: value for name, value in operation.properties.items() if value not in ("", None)}
        self._refuse(
            principal.user,
            principal.address,
            action,
            error.reason,
            object=operation.name,
            **({"properties": properties} if properties else {}),
        )

    def close(self) -> None:
        """Write what was counted."""
        self._write_repeated()

    def _change(self, client: BrokerClient | None, action: str, name: str, **details: object) -> None:
        if client is not None:
            self._write(client.info, action, "done", object=name, **details)

    def _write(self, info: ClientInfo, action: str, result: str = "done", **details: object) -> None:
        if info.protocol == LOCAL:
            return
        self._write_repeated()
        line = audit_line(
            action,
            user=info.user,
            address=info.address,
            by=info.mechanism or "nothing",
            result=result,
            details=details,
        )
        log.log(logging.INFO if result == "done" else logging.WARNING, "%s", line)

    def _refuse(self, user: str, address: str, action: str, reason: str, **details: object) -> None:
        same = (user, address, f"{action} {details} {reason}")
        if same == self._last:
            self._repeated += 1
            return
        self._write_repeated()
        self._last = same
        line = audit_line(
            action, user=user, address=address, by="refused", result="refused", details={**details, "reason": reason}
        )
        log.warning("%s", line)

    def _write_repeated(self) -> None:
        last, count = self._last, self._repeated
        self._last, self._repeated = None, 0
        if last is not None and count:
            line = audit_line(
                "the same again",
                user=last[0],
                address=last[1],
                by="refused",
                result="refused",
                details={"count": count},
            )
            log.warning("%s", line)
