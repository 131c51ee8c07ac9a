"""What consoles may change in the broker: the methods of the broker's object and of its queues.

Names, options and texts of errors are those of qpidd.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from qmf.agent import ErrorCode, MethodError
from qmf.broker.management.callers import answers_refusals, current_principal, refusal
from qmf.broker.nodes.bindings import PEER_OPERATION, PEER_ORIGIN, BindingRefused, BindingSpec
from qmf.broker.nodes.exchange_types import EXCHANGE_TYPES
from qmf.broker.nodes.exchanges import Exchange, HeadersExchange
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.node_declaration import NodeDeclarationError, read_node_declaration
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.recorder import NotStored
from qmf.broker.nodes.registry import BindingExists, ExchangeInUse, NameInUse, NoSuchExchange
from qmf.broker.nodes.topics import PolicyKind, TopicError
from qmf.broker.operations.forwarders import ForwardingError
from qmf.broker.operations.forwarding import QUEUE_LINK, RELAY, TRANSPORTS, LinkDirection
from qmf.broker.operations.operations import Operations
from qmf.broker.operations.policy import Action, ObjectType
from qmf.broker.operations.principal import Principal
from qmf.errors import DecodeError

#: What `create` and `delete` know.
_EXCHANGE_TYPES = ("exchange", "topic")
_FORWARDER_TYPES = frozenset({"domain", "link", "bridge", RELAY, QUEUE_LINK, *(each.value for each in LinkDirection)})
#: Beginning of the names of links that only `connect` gives.
_RESERVED = "qpid."
_POLICIES = {kind.value: kind for kind in PolicyKind}


class Administration:
    """Creates, deletes and changes nodes on behalf of consoles; the policy may refuse each with a `MethodError`."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations
        self._registry = operations.registry

    @property
    def _principal(self) -> Principal:
        return current_principal()

    @answers_refusals
    def create(self, type: str, name: str, properties: Mapping[str, object], strict: bool) -> None:
        """Create a queue, an exchange, a binding, or another object of the broker.

        Args:
            type: ``queue``, ``exchange``, ``topic``, ``binding``, ``QueuePolicy``, ``TopicPolicy``, ``domain``,
                ``incoming``, ``outgoing``, ``link``, ``bridge``, ``relay`` or ``queuelink``.
            name: of the node; of a binding ``exchange/queue/key``.
            properties: settings of the node, or arguments of the binding.
            strict: refuse settings that this broker does not know, rather than ignore them.

        Raises:
            MethodError: it exists, a setting is invalid, or a node of a binding does not exist.
        """
        if type == "binding":
            self._bind(name, properties)
        elif type in _FORWARDER_TYPES:
            self._create_forwarder(type, name, properties, strict=strict)
        elif type in _POLICIES or (type == "topic" and "exchange" in properties):
            self._create_named(type, name, properties, strict=strict)
        else:
            self._create_node(type, name, properties, strict=strict)

    def wait_until_stored(self) -> Awaitable[None]:
        """Wait until the disk has what was created or deleted just now, as a kill must not undo what was answered.

        Raises:
            MethodError: it could not be written; the broker has it until it ends.
        """
        written: asyncio.Future[NotStored | None] = asyncio.get_running_loop().create_future()

        def on_stored(error: NotStored | None) -> None:
            if not written.done():  # the caller may have gone
                written.set_result(error)

        # At once: later in this turn the unit is closed on behalf of nobody.
        recorder = self._registry.recorder
        if recorder is None or not recorder.close_unit(on_stored):
            on_stored(None)
        return _until_written(written)

    @answers_refusals
    def delete(self, type: str, name: str, options: Mapping[str, object]) -> None:
        """Delete what `create` can create.

        Args:
            type, name: as of `create`.
            options: of a queue: ``if_empty``, ``if_unused``.

        Raises:
            MethodError: it does not exist, or may not be deleted.
        """
        if type == "binding":
            exchange, queue, key = self._ends(name, "Unbind")
            self._operations.unbind(self._principal, exchange, queue, key)
        elif type in _FORWARDER_TYPES:
            self._operations.forwarding.delete(self._principal, type, name)
        elif type == "queue":
            self._delete_queue(name, options)
        elif type in _POLICIES:
            try:
                self._operations.delete_policy(self._principal, _POLICIES[type], name)
            except TopicError as error:
                raise MethodError(str(error)) from error
        elif type == "topic" and self._registry.topics.get(name) is not None:
            self._operations.delete_topic(self._principal, name)
        else:
            self._check_type(type, _EXCHANGE_TYPES)
            found = self._registry.exchange(name)
            if not name:
                raise MethodError("invalid-argument: Delete not allowed for default exchange")
            if isinstance(found, Exchange) and self._registry.is_predeclared(found):
                raise MethodError(f"not-allowed: Cannot delete default exchange: '{name}'")
            if not isinstance(found, Exchange):
                self._operations.ask_missing(self._principal, Action.DELETE, ObjectType.EXCHANGE, name)
                raise MethodError(f"not-found: Exchange not found: {name}")
            try:
                self._operations.delete(self._principal, found)
            except ExchangeInUse as error:
                raise MethodError(f"not-allowed: {error}") from error

    @answers_refusals
    def queue(self, type: str, name: str) -> Queue:
        """The queue that `query` is about.

        Raises:
            MethodError: there is none, or another type was asked for.
        """
        if type in (*_EXCHANGE_TYPES, "binding", *_FORWARDER_TYPES):
            raise refusal(ErrorCode.NOT_IMPLEMENTED, f"only queues can be asked for, not {name!r}")
        self._check_type(type, ("queue",))
        found = self._registry.queue(name)
        if found is None:
            self._operations.ask_missing(self._principal, Action.ACCESS, ObjectType.QUEUE, name)
            raise _no_queue(name)
        self._operations.ask_access(self._principal, found)
        return found

    @answers_refusals
    def purge(self, queue: Queue, count: int, filter: Mapping[str, object]) -> None:
        """Remove waiting messages of a queue; arguments as of `reroute`.

        Raises:
            MethodError: the filter is invalid.
        """
        self._operations.purge(self._principal, queue, count, message_filter(filter))

    @answers_refusals
    def move(self, source: str, target: str, count: int, filter: Mapping[str, object]) -> None:
        """Move waiting messages from one queue to another; what the other refuses stays.

        Raises:
            MethodError: a queue does not exist, or the filter is invalid.
        """
        one, two = self._registry.queue(source), self._registry.queue(target)
        if one is None or two is None:
            self._ask_missing_queue(Action.MOVE, source, target)
            missing = source if one is None else target
            raise refusal(ErrorCode.INVALID_PARAMETER, f"no queue {missing!r}")
        self._operations.move(self._principal, one, two, count, message_filter(filter))

    @answers_refusals
    def reroute(self, queue: Queue, count: int, exchange: str | None, filter: Mapping[str, object]) -> None:
        """Publish waiting messages of a queue to an exchange, as new ones; what is refused stays.

        Args:
            count: how many at most; 0 for all.
            exchange: its name; None for the alternate exchange of the queue.
            filter: see `message_filter`.

        Raises:
            MethodError: the exchange does not exist, or the filter is invalid.
        """
        name = queue.settings.alternate if exchange is None else exchange
        found = None if exchange is None and queue.alternate is None else self._registry.exchange(name)
        if found is None:
            self._operations.ask_missing(
                self._principal, Action.REROUTE, ObjectType.QUEUE, queue.name, {"exchangename": name}
            )
            problem = "Exchange not found" if exchange or queue.alternate else "No alternate-exchange defined"
            raise refusal(ErrorCode.INVALID_PARAMETER, problem)
        matches = message_filter(filter)
        if isinstance(found, HeadersExchange):
            chosen = matches
            matches = lambda message: _headers(message) is not None and (chosen is None or chosen(message))  # noqa: E731
        self._operations.reroute(self._principal, queue, found, count, matches)

    @answers_refusals
    def redirect(self, source: str, target: str) -> None:
        """Redirect new messages of a queue to another one, and those of that to the first; or end that.

        Args:
            target: name of the other queue; empty to end a redirection, which moves its messages to `source`.

        Raises:
            MethodError: a queue does not exist, or cannot take part.
        """
        one = self._registry.queue(source)
        two = self._registry.queue(target) if target else None
        if (problem := _redirection_problem(source, target, one, two)) is not None:
            self._ask_missing_queue(Action.REDIRECT, source, target)
            raise problem
        assert one is not None
        if two is None:
            self._operations.end_redirection(self._principal, one)
            return
        self._operations.redirect(self._principal, one, two)

    @answers_refusals
    def connect(self, host: str, port: int, transport: str, properties: Mapping[str, object]) -> None:
        """Create a link for routes, unless there is one to this place.

        Args:
            host, port: of the other broker.
            transport: `tcp` or `ssl`; empty for `tcp`.
            properties: further ones of the link.

        Raises:
            MethodError: a property is wrong.
        """
        if transport and transport not in TRANSPORTS:
            raise refusal(ErrorCode.NOT_IMPLEMENTED, f"transport type not supported: {transport!r}")
        transport = transport or "tcp"
        forwarding = self._operations.forwarding
        place, name = (host, port, TRANSPORTS[transport]), f"{_RESERVED}{transport}:{host}:{port}"
        links = forwarding.federation.route_links if forwarding.federation is not None else ()
        if any(link.place == place for link in links):
            # Who may create none does not learn that there is one.
            self._operations.ask_missing(self._principal, Action.CREATE, ObjectType.LINK, name)
            return
        wanted = {**properties, "host": host, "port": port, "transport": transport}
        try:
            forwarding.create(self._principal, "link", name, wanted)
        except ForwardingError as error:
            raise refusal(ErrorCode.INVALID_PARAMETER, str(error)) from error

    @answers_refusals
    def bridge(self, link: str, properties: Mapping[str, object]) -> None:
        """Create a route on a link, unless there is one from this source to this destination with this key.

        Args:
            properties: of the route, ``src``, ``dest`` and ``key`` among them.

        Raises:
            MethodError: a property is wrong.
        """
        forwarding = self._operations.forwarding
        ends = [str(properties[item]) for item in ("src", "dest", "key")]
        name = "!".join((link.removeprefix(_RESERVED), *ends))
        bridges = forwarding.federation.bridges if forwarding.federation is not None else ()
        for item in bridges:
            if item.link.name == link and [item.bridge.src, item.bridge.dest, item.bridge.key] == ends:
                self._operations.ask_missing(self._principal, Action.CREATE, ObjectType.LINK, name)
                return
        try:
            forwarding.create(self._principal, "bridge", name, {**properties, "link": link})
        except ForwardingError as error:
            raise refusal(ErrorCode.INVALID_PARAMETER, str(error)) from error

    @answers_refusals
    def timestamps(self) -> bool:
        """Whether messages that come get the time as an annotation."""
        return self._operations.timestamps(self._principal)

    @answers_refusals
    def set_timestamps(self, *, receive: bool) -> None:
        """Let messages that come get the time as an annotation, or not."""
        self._operations.set_timestamps(self._principal, receive=receive)

    def _ask_missing_queue(self, action: Action, source: str, target: str) -> None:
        self._operations.ask_missing(self._principal, action, ObjectType.QUEUE, source, {"queuename": target})

    def _check_type(self, type: str, known: tuple[str, ...]) -> None:
        if type in known:
            return
        raise MethodError(f"unknown object type: {type}")

    def _create_named(self, type: str, name: str, properties: Mapping[str, object], *, strict: bool) -> None:
        """Create a topic that names an exchange, or a policy."""
        if not name:
            raise MethodError("invalid parameter to method call: the name is empty")
        try:
            if type == "topic":
                self._operations.create_topic(self._principal, name, properties, strict=strict)
            else:
                self._operations.create_policy(self._principal, _POLICIES[type], name, properties, strict=strict)
        except TopicError as error:
            raise MethodError(str(error)) from error
        except NodeDeclarationError as error:
            raise MethodError(f"invalid-argument: {error}") from error

    def _create_node(self, type: str, name: str, properties: Mapping[str, object], *, strict: bool) -> None:
        """Create a queue or an exchange."""
        if type != "queue":
            self._check_type(type, _EXCHANGE_TYPES)
            kind = properties.get("exchange-type", "topic")
            if kind not in EXCHANGE_TYPES:
                raise MethodError(f"Invalid exchange type: {kind}")
        try:
            declaration = read_node_declaration(
                ("queue" if type == "queue" else "topic",), properties, strict=strict, limits=self._registry.limits
            )
        except NodeDeclarationError as error:
            raise MethodError(f"invalid-argument: {error}") from error
        if not name:
            raise MethodError("invalid parameter to method call: the name is empty")
        if type == "queue" and declaration.exchange is not None:
            raise MethodError("invalid parameter to method call: exchange-type: a queue has none")
        try:
            self._operations.create(self._principal, name, declaration)
        except NameInUse as error:
            raise MethodError(f"object already exists: {name}") from error
        except NoSuchExchange as error:
            raise MethodError(f"not-found: {error}") from error
        except NodeDeclarationError as error:
            raise MethodError(f"invalid parameter to method call: {error}") from error

    def _create_forwarder(self, type: str, name: str, properties: Mapping[str, object], *, strict: bool) -> None:
        """Create a domain, a link, a route, a relay, or a link between queues."""
        if not name:
            raise MethodError("invalid parameter to method call: the name is empty")
        if type == "link" and name.startswith(_RESERVED):
            raise MethodError(f"names prefixed with '{_RESERVED}' are reserved: {name}")
        self._operations.forwarding.create(self._principal, type, name, properties, strict=strict)

    def _bind(self, name: str, arguments: Mapping[str, object]) -> None:
        of_peer = bool(PEER_OPERATION in arguments and arguments.get(PEER_ORIGIN))
        exchange, queue, key = self._ends(name, "Bind", of_peer=of_peer)
        spec = BindingSpec(key, {str(item): value for item, value in arguments.items() if item != "exchange-type"})
        try:
            if of_peer:
                self._operations.bind_for_peer(self._principal, exchange, queue, spec)
            else:
                self._operations.bind(self._principal, exchange, queue, spec)
        except BindingExists as error:
            raise MethodError(f"not-allowed: Bind failed. {error}") from error
        except BindingRefused as error:
            raise MethodError(f"internal-error: {error}") from error

    def _ends(self, name: str, what: str, *, of_peer: bool = False) -> tuple[Exchange, Queue, str]:
        """Exchange, queue and key of a binding's name; the keys of other brokers may contain slashes."""
        parts = name.split("/", 2) if of_peer else name.split("/")
        if not name or len(parts) > 3:
            raise MethodError(f"invalid binding: {name}")
        exchange, queue, key = {1: ["", *parts, ""], 2: [*parts, ""]}.get(len(parts), parts)
        if not exchange:
            raise MethodError(f"invalid-argument: {what} not allowed for default exchange")
        target, source = self._registry.queue(queue), self._registry.exchange(exchange)
        locked = target is not None and target.exclusive and target.delivery.consumers
        if target is None or not isinstance(source, Exchange) or locked:
            action = Action.BIND if what == "Bind" else Action.UNBIND
            properties = {"queuename": queue, "routingkey": key}
            self._operations.ask_missing(self._principal, action, ObjectType.EXCHANGE, exchange, properties)
        if target is None:
            raise MethodError(f"not-found: {what} failed. No such queue: {queue}")
        if not isinstance(source, Exchange):
            raise MethodError(f"not-found: {what} failed. No such exchange: {exchange}")
        if locked:
            # Subscriptions of consoles and agents, and the broker's own, must not get other messages.
            raise MethodError(
                f"resource-locked: Cannot {what.lower()} queue {queue}; it is exclusive to another session"
            )
        return source, target, key

    def _delete_queue(self, name: str, options: Mapping[str, object]) -> None:
        found = self._registry.queue(name)
        if found is None:
            self._operations.ask_missing(self._principal, Action.DELETE, ObjectType.QUEUE, name)
            raise MethodError(f"not-found: Delete failed. No such queue: {name}")
        self._operations.delete(self._principal, found, check=lambda: _check_deletable(found, options))


def _check_deletable(queue: Queue, options: Mapping[str, object]) -> None:
    name = queue.name
    if options.get("if_empty") and queue.contents.depth.count:
        raise MethodError(f"precondition-failed: Cannot delete queue {name}; queue not empty")
    if options.get("if_unused") and (queue.delivery.consumers or queue.delivery.browsers):
        raise MethodError(f"precondition-failed: Cannot delete queue {name}; queue in use")
    if queue.exclusive and queue.delivery.consumers:
        # Consoles and the broker's own agent receive from such queues.
        raise MethodError(f"resource-locked: Cannot delete queue {name}; it is exclusive to another session")


def message_filter(filter: Mapping[str, object]) -> Callable[[Message], bool] | None:
    """The messages that `purge`, `reroute` and `queueMoveMessages` are to take; None for all.

    Args:
        filter: empty, or ``{"filter_type": "header_match_str", "filter_params": {"header_key": NAME,
            "header_value": TEXT}}``.

    Raises:
        MethodError: it is another one.
    """
    if not filter:
        return None
    parameters = filter.get("filter_params")
    if filter.get("filter_type") == "header_match_str" and isinstance(parameters, Mapping):
        name, value = parameters.get("header_key"), parameters.get("header_value")
        if isinstance(name, str) and isinstance(value, str):
            return lambda message: (headers := _headers(message)) is not None and _text(headers.get(name)) == value
    raise MethodError(f"Unrecognized message filter: {dict(filter)!r}")


def _redirection_problem(source: str, target: str, one: Queue | None, two: Queue | None) -> MethodError | None:
    """Why queues of these names cannot take part in a redirection, or in its end."""
    if one is None:
        return _no_queue(source)
    if not target:
        if one.redirected is None or not one.redirect_source:
            return MethodError(f"queue {source!r} is not the source of a redirection", ErrorCode.METHOD)
        return None
    if two is None:
        return _no_queue(target)
    if one is two:
        return MethodError(f"queue {source!r} cannot be its own target", ErrorCode.METHOD)
    for queue in (one, two):
        if queue.settings.auto_delete:
            return MethodError(f"queue {queue.name!r} deletes itself, and cannot be redirected", ErrorCode.METHOD)
        if queue.redirected is not None:
            return MethodError(f"queue {queue.name!r} is redirected already", ErrorCode.METHOD)
    return None


def _no_queue(name: str) -> MethodError:
    return refusal(ErrorCode.UNKNOWN_OBJECT, f"no queue {name!r}")


def _headers(message: Message) -> Mapping[str, object] | None:
    """The application properties; None where they are malformed, which is noticed when they are first read."""
    try:
        return message.headers
    except DecodeError:
        return None


def _text(value: object) -> str | None:
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


async def _until_written(written: Awaitable[NotStored | None]) -> None:
    if (error := await written) is not None:
        raise MethodError(f"internal-error: it is done, but not on the disk: {error.reason}")
