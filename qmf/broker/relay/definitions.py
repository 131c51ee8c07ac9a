"""Relays as they are asked for: values, read from the properties that consoles give. No I/O."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

import attrs

from qmf.broker.federation.definitions import (
    MAX_HOPS,
    LinkDefinition,
    plain_values,
    refuse_unknown,
    split_queue_arguments,
    stored_fields,
)
from qmf.broker.nodes.arguments import NodeArgumentError
from qmf.broker.nodes.relay_addresses import AT, DEAD_LETTERS, normal_domain
from qmf.broker.operations.forwarders import ForwardingError
from qmf.broker.operations.forwarding import LinkDirection
from qmf.broker.operations.principal import Principal

#: Times that the other broker may refuse a message for now, unless the relay says otherwise.
RETRIES = 60

#: Properties of a domain that is looked up in the DNS.
_LOGIN = ("username", "password", "sasl_mechanisms")


@attrs.frozen(eq=False)
class RelayDefinition:
    """A relay.

    Attributes:
        name: the domain in addresses, in small letters.
        domain: name of the domain (another broker) to which messages are forwarded; empty for `srv` or `waits`.
        srv: that broker is looked up in the DNS.
        login: user, password and mechanisms for it then.
        durable: the relay is there again after a restart; its queue always is.
        timeout: seconds that a message may wait; None for those of the broker.
        retries: times that the other broker may refuse a message for now, before it is a dead letter.
        dead_letters: name of the queue for messages that could not be forwarded.
        full_address: messages are sent to ``name@domain``, and not to ``name``.
        queue: arguments of the transmission queue.
        principal: on whose behalf the relay was created.
        container: container id under which the other broker knows it.
        properties: as given.
    """

    name: str
    domain: str
    srv: bool
    login: Mapping[str, object] = attrs.field(repr=False)
    durable: bool
    timeout: int | None
    retries: int
    dead_letters: str
    full_address: bool
    queue: Mapping[str, object]
    principal: Principal
    container: str
    properties: Mapping[str, object] = attrs.field(repr=False)

    @property
    def who(self) -> str:
        """What it is, for the log."""
        return f"relay to domain {self.name}"

    @property
    def waits(self) -> bool:
        """Nothing is forwarded: messages wait until the other broker takes them from the transmission queue."""
        return not self.domain and not self.srv

    @property
    def transmission_queue(self) -> str:
        """Name of the queue in which messages wait."""
        return f"relay.{self.name}"

    @property
    def fields(self) -> dict[str, object]:
        """What the store keeps of it: `read_relay` reads it."""
        return stored_fields(self.properties, self.principal, self.container)

    @property
    def link(self) -> LinkDefinition:
        """The link of the transfer agent."""
        return LinkDefinition(
            name=self.transmission_queue,
            direction=LinkDirection.OUTGOING,
            domain=self.domain or self.name,
            source=self.transmission_queue,
            target="",
            durable=self.durable,
            key="",
            selector="",
            queue={},
            max_hops=MAX_HOPS,
            principal=self.principal,
            container=self.container,
            properties={},
            exactly_once=True,
        )


def read_relay(
    name: str,
    properties: Mapping[str, object],
    principal: Principal,
    container: str | None = None,
    *,
    strict: bool = False,
) -> RelayDefinition:
    """A relay from its properties, or from what the store has of it (`split_link_fields`).

    Args:
        name: the domain in addresses.
        properties: ``domain``, ``srv``, ``username``, ``password``, ``sasl_mechanisms``, ``durable``, ``timeout``,
            ``retries``, ``dead_letters``, ``full_address``, and those of a queue, which begin with ``qpid.``.
        container: container id under which the other broker knows it; None for a new one.
        strict: refuse other properties.

    Raises:
        ForwardingError: a property is wrong.
    """
    arguments, queue = split_queue_arguments(properties)
    try:
        domain, dead_letters = arguments.text("domain"), arguments.text("dead_letters") or DEAD_LETTERS
        srv, durable, full = (arguments.boolean(key) for key in ("srv", "durable", "full_address"))
        timeout, retries = arguments.number("timeout"), arguments.number("retries")
        login = {key: value for key in _LOGIN if (value := arguments.pop(key)) is not None}
    except NodeArgumentError as error:
        raise ForwardingError(f"invalid-argument: {error}") from error
    if problem := _contradiction(name, domain, login, timeout, srv=srv):
        raise ForwardingError(f"invalid-argument: {problem}")
    refuse_unknown(arguments, strict=strict)
    return RelayDefinition(
        normal_domain(name),
        domain,
        srv,
        login,
        durable,
        timeout,
        RETRIES if retries is None else retries,
        dead_letters,
        full,
        queue,
        principal.lasting,
        f"qmf-relay-{uuid.uuid4()}" if container is None else container,
        plain_values(properties),
    )


def _contradiction(name: str, domain: str, login: Mapping[str, object], timeout: int | None, *, srv: bool) -> str:
    """What is wrong with a name, and with properties that are right each for itself; empty for nothing."""
    if not name or AT in name or name != name.strip():
        return f"{name!r} is no domain, such as example.org"
    if domain and srv:
        return "srv: the broker is the domain's, or is looked up; not both"
    if login and not srv:
        return f"{next(iter(login))}: belongs to the domain, unless srv is set"
    return "timeout: must be 1 second or more, not 0" if timeout == 0 else ""
