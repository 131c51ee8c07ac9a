"""What the options of an address mean: names and types checked, values as frozen objects.

Source: High Level Client API, "Extended Address Options"; published Python API, "Options" of addresses.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import attrs

from qmf.messaging.exceptions import InvalidOption

E = TypeVar("E", bound=enum.Enum)


class AddressPolicy(enum.Enum):
    """Which side does something with the node: create it, assert its kind, or delete it."""

    ALWAYS = "always"
    SENDER = "sender"
    RECEIVER = "receiver"
    NEVER = "never"

    def applies(self, *, sending: bool) -> bool:
        """True if a sender (or else a receiver) with this policy acts."""
        return self in (AddressPolicy.ALWAYS, AddressPolicy.SENDER if sending else AddressPolicy.RECEIVER)


class Mode(enum.Enum):
    """Whether a receiver takes messages from a queue or leaves them there."""

    BROWSE = "browse"
    CONSUME = "consume"


class NodeType(enum.Enum):
    """The kind of a node: an exchange is a topic."""

    QUEUE = "queue"
    TOPIC = "topic"


class Reliability(enum.Enum):
    """What a link guarantees for a message."""

    UNRELIABLE = "unreliable"
    AT_MOST_ONCE = "at-most-once"
    AT_LEAST_ONCE = "at-least-once"
    EXACTLY_ONCE = "exactly-once"


@attrs.frozen
class BindingOptions:
    """A binding between an exchange and a queue.

    Attributes:
        exchange, queue: their names; None for the node of the address.
        key: the binding key.
        arguments: of the binding, by name.
    """

    exchange: str | None = None
    queue: str | None = None
    key: str | None = None
    arguments: Mapping[str, object] = attrs.field(factory=dict)


@attrs.frozen
class DeclareOptions:
    """How a node or a subscription queue is declared (``x-declare``).

    Attributes:
        type: the type of an exchange, such as ``topic``.
        exclusive, auto_delete: of a queue; None where not given.
        alternate_exchange: where undeliverable messages go.
        arguments: of the declaration, by name; other names of the map are added to them.
        bindings: of the queue, from its declaration.
    """

    type: str | None = None
    exclusive: bool | None = None
    auto_delete: bool | None = None
    alternate_exchange: str | None = None
    arguments: Mapping[str, object] = attrs.field(factory=dict)
    bindings: tuple[BindingOptions, ...] = ()


@attrs.frozen
class NodeOptions:
    """Options of the node.

    Attributes:
        type: None where not given.
        durable: whether the node outlives a restart of the broker; None where not given.
        declare: how it is declared.
        bindings: made when the link is opened; they last as long as queue and exchange.
        capabilities: that the node must have, in the words of the broker.
        properties: of the node, by name.
    """

    type: NodeType | None = None
    durable: bool | None = None
    declare: DeclareOptions = DeclareOptions()
    bindings: tuple[BindingOptions, ...] = ()
    capabilities: tuple[str, ...] = ()
    properties: Mapping[str, object] = attrs.field(factory=dict)


@attrs.frozen
class FilterOptions:
    """A filter of a source.

    Attributes:
        name: its key in the filter map.
        descriptor: the number or symbol that says which kind of filter it is.
        value: its argument.
    """

    name: str
    descriptor: str | int
    value: object


@attrs.frozen
class LinkOptions:
    """Options of the link.

    Attributes:
        name: of the link; None for a generated one.
        durable: whether the subscription outlives the connection.
        reliability: None where not given.
        timeout: seconds for which the broker keeps a link without connection; None where not given.
        selector: a condition on messages, in the language of JMS selectors.
        start: where in a queue a receiver begins: ``head``, ``tail``, a map with ``time`` or ``sequence``; None where
            not given.
        filters: further filters of the source.
        declare: how the subscription queue is declared.
        bindings: of the subscription queue; of a link to a queue, those of the queue.
        subscribe: options of the subscription, by name (``x-subscribe``).
    """

    name: str | None = None
    durable: bool | None = None
    reliability: Reliability | None = None
    timeout: float | None = None
    selector: str | None = None
    start: object = None
    filters: tuple[FilterOptions, ...] = ()
    declare: DeclareOptions = DeclareOptions()
    bindings: tuple[BindingOptions, ...] = ()
    subscribe: Mapping[str, object] = attrs.field(factory=dict)


@attrs.frozen
class AddressOptions:
    """All options of an address.

    Attributes:
        create, assert_, delete: who creates the node, asserts its kind, deletes it.
        mode: None where not given.
        node, link: options of the node and of the link.
    """

    create: AddressPolicy = AddressPolicy.NEVER
    assert_: AddressPolicy = AddressPolicy.NEVER
    delete: AddressPolicy = AddressPolicy.NEVER
    mode: Mode | None = None
    node: NodeOptions = NodeOptions()
    link: LinkOptions = LinkOptions()


def read_options(address: str, values: Mapping[str, object]) -> AddressOptions:
    """Check the options of an address.

    Args:
        address: for messages.
        values: as parsed.

    Raises:
        InvalidOption: an unknown name, or a value of a wrong type, in the words of the published API; names the option
            by its path, such as ``node: x-declare: type``. A note of the error has the address.
    """
    reader = _OptionMap(address, "", values)
    options = AddressOptions(
        create=reader.choice("create", AddressPolicy) or AddressPolicy.NEVER,
        assert_=reader.choice("assert", AddressPolicy) or AddressPolicy.NEVER,
        delete=reader.choice("delete", AddressPolicy) or AddressPolicy.NEVER,
        mode=reader.choice("mode", Mode),
        node=_node(reader.map("node")),
        link=_link(reader.map("link")),
    )
    reader.finish()
    return options


def _node(reader: _OptionMap) -> NodeOptions:
    options = NodeOptions(
        type=reader.choice("type", NodeType),
        durable=reader.boolean("durable"),
        declare=_declare(reader.map("x-declare")),
        bindings=reader.each("x-bindings", _binding),
        capabilities=reader.texts("capabilities"),
        properties=reader.map("properties").rest(),
    )
    reader.finish()
    return options


def _link(reader: _OptionMap) -> LinkOptions:
    options = LinkOptions(
        name=reader.text("name"),
        durable=reader.boolean("durable"),
        reliability=reader.choice("reliability", Reliability),
        timeout=reader.seconds("timeout"),
        selector=reader.text("selector"),
        start=reader.take("start"),
        filters=reader.each("filter", _filter, alone=True),
        declare=_declare(reader.map("x-declare")),
        bindings=reader.each("x-bindings", _binding),
        subscribe=reader.map("x-subscribe").rest(),
    )
    reader.finish()
    return options


def _declare(reader: _OptionMap) -> DeclareOptions:
    return DeclareOptions(
        type=reader.text("type"),
        exclusive=reader.boolean("exclusive"),
        auto_delete=reader.boolean("auto-delete"),
        alternate_exchange=reader.text("alternate-exchange"),
        bindings=reader.each("bindings", _binding, of_text=_binding_text),
        arguments={**reader.map("arguments").rest(), **reader.rest()},
    )


def _binding(reader: _OptionMap) -> BindingOptions:
    binding = BindingOptions(
        exchange=reader.text("exchange"),
        queue=reader.text("queue"),
        key=reader.text("key"),
        arguments=reader.map("arguments").rest(),
    )
    reader.finish()
    return binding


def _binding_text(text: str) -> BindingOptions:
    """The short form of the manual: ``exchange/key``."""
    exchange, _, key = text.partition("/")
    return BindingOptions(exchange=exchange, key=key or None)


def _filter(reader: _OptionMap) -> FilterOptions:
    name, value = reader.text("name"), reader.take("value")
    descriptor = reader.take("descriptor")
    if name is None or not isinstance(descriptor, str | int) or isinstance(descriptor, bool):
        raise reader.error("", "a filter has a name, a descriptor (a number or a name) and a value")
    reader.finish()
    return FilterOptions(name, descriptor, value)


T = TypeVar("T")


class _OptionMap:
    """A map of options that is read entry by entry; what is left over is unknown."""

    def __init__(self, address: str, path: str, values: Mapping[str, object]) -> None:
        self._address = address
        self._path = path
        self._values = dict(values)
        self._known: list[str] = []

    def take(self, name: str) -> object:
        """The value of an option, or None."""
        self._known.append(name)
        return self._values.pop(name, None)

    def error(self, name: str, reason: str) -> InvalidOption:
        path = ": ".join(part for part in (self._path, name) if part)
        error = InvalidOption(text=f"error in options: {path}: {reason}")
        error.add_note(f"in the address {self._address!r}")
        return error

    def _take_typed(self, name: str, kinds: tuple[type, ...], what: str) -> Any:
        value = self.take(name)
        if value is None or (isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))):
            return value
        raise self.error(name, f"{value} is not a {what}")

    def text(self, name: str) -> str | None:
        value: str | None = self._take_typed(name, (str,), "str")
        return value

    def boolean(self, name: str) -> bool | None:
        value: bool | None = self._take_typed(name, (bool,), "bool")
        return value

    def seconds(self, name: str) -> float | None:
        value: float | None = self._take_typed(name, (int, float), "number of seconds")
        if value is not None and value < 0:
            raise self.error(name, f"{value} is negative")
        return value

    def choice(self, name: str, kind: type[E]) -> E | None:
        value = self.take(name)
        if value is None:
            return None
        for member in kind:
            if member.value == value:
                return member
        raise self.error(name, f"{value} not in {tuple(member.value for member in kind)}")

    def map(self, name: str) -> _OptionMap:
        value = self._take_typed(name, (dict,), "map")
        return _OptionMap(self._address, ": ".join(part for part in (self._path, name) if part), value or {})

    def texts(self, name: str) -> tuple[str, ...]:
        value = self._take_typed(name, (list, str), "name or a list of names")
        items = [value] if isinstance(value, str) else value or []
        if not all(isinstance(item, str) for item in items):
            raise self.error(name, f"{value} is not a name or a list of names")
        return tuple(items)

    def each(
        self,
        name: str,
        read: Callable[[_OptionMap], T],
        *,
        alone: bool = False,
        of_text: Callable[[str], T] | None = None,
    ) -> tuple[T, ...]:
        """The entries of a list of maps.

        Args:
            name: of the option.
            read: reads one map.
            alone: one map may stand for a list of one.
            of_text: reads an entry that is text, where that is allowed.
        """
        value = self._take_typed(name, (list, dict) if alone else (list,), "list")
        items = [value] if isinstance(value, dict) else value or []
        found = []
        for number, item in enumerate(items):
            if isinstance(item, str) and of_text is not None:
                found.append(of_text(item))
            elif isinstance(item, dict):
                path = ": ".join(part for part in (self._path, f"{name}[{number}]") if part)
                found.append(read(_OptionMap(self._address, path, item)))
            else:
                raise self.error(f"{name}[{number}]", f"{item} is not a map")
        return tuple(found)

    def rest(self) -> dict[str, object]:
        """All that was not read, without a check."""
        values, self._values = self._values, {}
        return values

    def finish(self) -> None:
        """Refuse what was not read."""
        for name in self._values:
            error = self.error(name, "illegal key")
            error.add_note(f"the options here are {', '.join(sorted(self._known))}")
            raise error
