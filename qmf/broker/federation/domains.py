"""The domains of a broker: the other brokers to which it can have links."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from qmf.broker.federation.definitions import Domain, read_domain
from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.operations.forwarders import Forwarders, ForwardingError
from qmf.broker.operations.principal import Principal


class BrokerDomains(Forwarders[Domain]):
    """The domains of a broker.

    Attributes:
        watchers: asked before a domain is deleted: what needs it, for people; empty for nothing.
    """

    def __init__(self, registry: NodeRegistry) -> None:
        super().__init__(registry, "domain")
        self.watchers: list[Callable[[Domain], str]] = []

    def add(self, principal: Principal, name: str, properties: Mapping[str, object], *, strict: bool) -> None:  # noqa: ARG002
        if self.has(name):
            raise ForwardingError(f"A domain named {name} already exists")
        self._keep(read_domain(name, properties, strict=strict))

    def remove(self, name: str) -> None:
        domain = self.find(name)
        for user_of in self.watchers:
            if user := user_of(domain):
                raise ForwardingError(f"not-allowed: domain {name} is in use by {user}")
        self._take(name)

    def restore(self, name: str, fields: Mapping[str, object]) -> None:
        self._keep(read_domain(name, fields))

    def _report_declared(self, item: Domain) -> None:
        self._registry.observer.on_domain_declared(item)

    def _report_deleted(self, item: Domain) -> None:
        self._registry.observer.on_domain_deleted(item)
