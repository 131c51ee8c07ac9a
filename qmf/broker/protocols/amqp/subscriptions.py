"""Subscriptions that outlive their links: durable ones, and those that several links share (AMQP 1.0, part 3.5).

A subscription is a queue that is bound to an exchange. It is identified by the client's container id and the link's
name or, if the source has the capability ``global``, by the link's name alone; of a shared one, the part of the name
before ``|``. A link with a null source asks for the subscription of its name: closing that link ends the subscription.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from qmf.broker.nodes.arguments import EXCLUDED, SUBSCRIPTION
from qmf.broker.nodes.bindings import BindingRefused, BindingSpec
from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.node_declaration import NodeDeclarationError
from qmf.broker.nodes.observed_clients import BrokerClient
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.settings import QueueSettings
from qmf.broker.operations.grants import ConsumeGrant
from qmf.broker.operations.operations import Operations
from qmf.broker.operations.policy import Action, ObjectType
from qmf.broker.operations.principal import Principal
from qmf.broker.protocols.amqp.bindings import LINK_DECLARATION, read_declaration
from qmf.broker.protocols.amqp.conditions import LinkRefused
from qmf.broker.protocols.amqp.filters import binding_from_filters, no_local_filter, selector_text
from qmf.bus.engine.link import Link
from qmf.bus.engine.values import Durability, ExpiryPolicy, Filter, Terminus

SHARED, GLOBAL = "shared", "global"


@attrs.frozen
class LinkSubscription:
    """A subscription as a link asks for it.

    Attributes:
        name: of its queue.
        settings: of its queue.
        spec: which messages of the exchange.
        filters: of the source, as far as they are applied.
    """

    name: str
    settings: QueueSettings
    spec: BindingSpec
    filters: tuple[Filter, ...]


def is_subscription(source: Terminus) -> bool:
    """True if a source asks for a subscription that may outlive its link, or be shared."""
    lasting = source.durability is not Durability.NONE or source.expiry is ExpiryPolicy.NEVER
    return lasting or SHARED in source.capabilities


class ClientSubscriptions:
    """The subscriptions of one client."""

    def __init__(self, client: BrokerClient, operations: Operations) -> None:
        self._client = client
        self._operations = operations
        self._registry = operations.registry
        #: Links with a null source, with the subscription that ends when they are closed.
        self._named: dict[Link, Queue] = {}

    def open(self, link: Link, source: Terminus, exchange: Exchange) -> tuple[ConsumeGrant, Terminus]:
        """The right to consume from a subscription, created where there is none; and the source as granted.

        One that exists with another binding or selector is replaced, as by JMS.

        Raises:
            LinkRefused: the filters are invalid, or the name is in use for something else.
            OperationRefused: the policy refuses it.
        """
        wanted = self._read(link, source, exchange)
        self._operations.ask_subscription(
            Principal.of(self._client), exchange, wanted.name, wanted.settings, wanted.spec.key
        )
        found = self._registry.queue(wanted.name)
        if found is not None and self._fits(found, wanted, exchange):
            grant = self._operations.consume(Principal.of(self._client), found)
        else:
            if found is not None:
                self._replace(found, wanted)
            grant = self._create(wanted, exchange)
        granted = Terminus(
            source.address,
            filters=wanted.filters,
            capabilities=tuple(name for name in source.capabilities if name in (SHARED, GLOBAL, "topic")),
            durability=source.durability,
            expiry=source.expiry,
            timeout=source.timeout,
        )
        return grant, granted

    def find(self, link: Link) -> Terminus:
        """The source of the subscription that a link with a null source names; closing the link will end it.

        Raises:
            LinkRefused: there is none.
            OperationRefused: the policy refuses to end it.
        """
        base, _, marks = link.name.partition("|")
        names = [base] if GLOBAL in marks else [f"{self._client.info.container}_{base}"]
        for name in names:
            queue = self._registry.queue(name)
            if queue is not None and SUBSCRIPTION in queue.settings.arguments:
                self._operations.ask_deletion(Principal.of(self._client), queue)
                self._named[link] = queue
                durability = Durability.UNSETTLED_STATE if queue.settings.durable else Durability.NONE
                exchange = str(queue.settings.arguments[SUBSCRIPTION])
                return Terminus(exchange, durability=durability, expiry=ExpiryPolicy.NEVER)
            self._operations.ask_missing(Principal.of(self._client), Action.DELETE, ObjectType.QUEUE, name)
        raise LinkRefused("amqp:not-found", f"there is no subscription {link.name!r}")

    def on_detached(self, link: Link, queue: Queue | None, *, closed: bool) -> None:
        """A link is gone. If it was closed, its subscription ends, unless others receive from it.

        Args:
            queue: of the subscription that the client has asked for with it; None where that is none.
            closed: the client has closed it, and has not just detached it.
        """
        queue = self._named.pop(link, queue)
        if closed and queue is not None and SUBSCRIPTION in queue.settings.arguments and not queue.delivery.consumers:
            self._operations.delete_owned(Principal.of(self._client), queue)

    def _read(self, link: Link, source: Terminus, exchange: Exchange) -> LinkSubscription:
        shared = SHARED in source.capabilities
        base, _, marks = link.name.partition("|") if shared else (link.name, "", "")
        volatile = shared and "volatile" in marks
        name = base if GLOBAL in source.capabilities else f"{self._client.info.container}_{base}"
        try:
            spec, applied = binding_from_filters(source.filters, exchange.kind)
            selector, used = selector_text(source.filters)
        except ValueError as error:
            raise LinkRefused("amqp:invalid-field", str(error)) from error
        no_local = no_local_filter(source.filters)
        excluded = self._client.info.container if no_local else ""
        lasting = source.expiry is ExpiryPolicy.NEVER and not volatile
        topic = self._registry.topics.get(source.address)
        common = QueueSettings(limits=self._registry.limits) if topic is None else topic.settings
        common = read_declaration(link.properties.get(LINK_DECLARATION), self._registry.limits, common)
        delay = common.delete_delay or (0 if lasting else source.timeout)
        settings = attrs.evolve(
            common,
            durable=source.durability is not Durability.NONE,
            exclusive=not shared,
            auto_delete=common.auto_delete or not lasting,
            delete_delay=delay,
            filter=selector or common.filter,
            excluded=excluded,
            arguments={**common.arguments, **_arguments(exchange, selector, excluded, delay)},
        )
        return LinkSubscription(f"{name}|volatile" if volatile else name, settings, spec, (*applied, *used, *no_local))

    @staticmethod
    def _fits(queue: Queue, wanted: LinkSubscription, exchange: Exchange) -> bool:
        binding = exchange.binding(queue, wanted.spec.key)
        return (
            queue.settings.arguments == wanted.settings.arguments
            and queue.settings.exclusive == wanted.settings.exclusive
            and binding is not None
            and binding.spec == wanted.spec
        )

    def _replace(self, found: Queue, wanted: LinkSubscription) -> None:
        if SUBSCRIPTION not in found.settings.arguments:
            raise LinkRefused("amqp:resource-locked", f"{wanted.name!r} exists, and is no subscription")
        if found.delivery.consumers:
            raise LinkRefused("amqp:resource-locked", f"subscription {wanted.name!r} is in use with other filters")
        self._operations.delete(Principal.of(self._client), found)

    def _create(self, wanted: LinkSubscription, exchange: Exchange) -> ConsumeGrant:
        principal = Principal.of(self._client)
        try:
            return self._operations.subscribe(principal, exchange, wanted.name, wanted.settings, wanted.spec)
        except (NodeDeclarationError, BindingRefused) as error:
            raise LinkRefused("amqp:invalid-field", str(error)) from error


def _arguments(exchange: Exchange, selector: str, excluded: str, timeout: int) -> Mapping[str, object]:
    """Arguments with which the store restores the queue as it was."""
    arguments: dict[str, object] = {SUBSCRIPTION: exchange.name}
    if selector:
        arguments["qpid.filter"] = selector
    if excluded:
        arguments[EXCLUDED] = excluded
    if timeout:
        arguments["qpid.auto_delete_timeout"] = timeout
    return arguments
