"""Options of addresses are checked by name and type."""

from __future__ import annotations

import pytest

from qmf.messaging.addresses import Address
from qmf.messaging.addresses.options import (
    AddressOptions,
    AddressPolicy,
    BindingOptions,
    DeclareOptions,
    FilterOptions,
    LinkOptions,
    Mode,
    NodeOptions,
    NodeType,
    Reliability,
)
from qmf.messaging.exceptions import InvalidOption


def options(text: str) -> AddressOptions:
    return Address(f"q; {text}").options


def test_no_options_are_the_defaults() -> None:
    assert Address("q").options == AddressOptions()
    assert options("{}") == AddressOptions()


def test_all_options() -> None:
    text = """{
        create: always, assert: receiver, delete: sender, mode: browse,
        node: {type: topic, durable: True, capabilities: [a, b], properties: {p: 1},
               x-declare: {type: direct, exclusive: True, auto-delete: False, alternate-exchange: amq.fanout,
                           arguments: {'qpid.max_count': 5}, 'qpid.max_size': 6,
                           bindings: ['amq.topic/a.#', {exchange: e, key: k}]},
               x-bindings: [{exchange: e, queue: q, key: k, arguments: {x: 1}}]},
        link: {name: n, durable: False, reliability: at-most-once, timeout: 2.5, selector: "a = 1",
               filter: {name: f, descriptor: 'x:y', value: [1]},
               x-declare: {exclusive: False}, x-bindings: [], x-subscribe: {exclusive: True}}
    }"""
    assert options(text) == AddressOptions(
        create=AddressPolicy.ALWAYS,
        assert_=AddressPolicy.RECEIVER,
        delete=AddressPolicy.SENDER,
        mode=Mode.BROWSE,
        node=NodeOptions(
            type=NodeType.TOPIC,
            durable=True,
            declare=DeclareOptions(
                type="direct",
                exclusive=True,
                auto_delete=False,
                alternate_exchange="amq.fanout",
                arguments={"qpid.max_count": 5, "qpid.max_size": 6},
                bindings=(BindingOptions(exchange="amq.topic", key="a.#"), BindingOptions(exchange="e", key="k")),
            ),
            bindings=(BindingOptions("e", "q", "k", {"x": 1}),),
            capabilities=("a", "b"),
            properties={"p": 1},
        ),
        link=LinkOptions(
            name="n",
            durable=False,
            reliability=Reliability.AT_MOST_ONCE,
            timeout=2.5,
            selector="a = 1",
            filters=(FilterOptions("f", "x:y", [1]),),
            declare=DeclareOptions(exclusive=False),
            subscribe={"exclusive": True},
        ),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{creat: always}", "creat: illegal key"),
        ("{create: sometimes}", "create: sometimes not in ('always', 'sender', 'receiver', 'never')"),
        ("{mode: peek}", "mode: peek not in ('browse', 'consume')"),
        ("{node: queue}", "node: queue is not a map"),
        ("{node: {type: list}}", "node: type: list not in ('queue', 'topic')"),
        ("{node: {durable: 1}}", "node: durable: 1 is not a bool"),
        ("{node: {colour: red}}", "node: colour: illegal key"),
        ("{node: {capabilities: [1]}}", "node: capabilities: [1] is not a name or a list of names"),
        ("{node: {x-declare: {type: 1}}}", "node: x-declare: type: 1 is not a str"),
        ("{node: {x-bindings: {}}}", "node: x-bindings: {} is not a list"),
        ("{node: {x-bindings: [1]}}", "node: x-bindings[0]: 1 is not a map"),
        ("{node: {x-bindings: [{}, {keys: k}]}}", "node: x-bindings[1]: keys: illegal key"),
        ("{link: {timeout: True}}", "link: timeout: True is not a number of seconds"),
        ("{link: {timeout: -1}}", "link: timeout: -1 is negative"),
        (
            "{link: {reliability: high}}",
            "link: reliability: high not in ('unreliable', 'at-most-once', 'at-least-once', 'exactly-once')",
        ),
        (
            "{link: {filter: {name: x}}}",
            "link: filter[0]: a filter has a name, a descriptor (a number or a name) and a value",
        ),
    ],
)
def test_faults_name_the_option(text: str, message: str) -> None:
    with pytest.raises(InvalidOption) as caught:
        options(text)
    assert str(caught.value) == f"error in options: {message}"
    assert "in the address " + repr(f"q; {text}") in caught.value.__notes__


def test_a_note_has_the_options_that_there_are() -> None:
    with pytest.raises(InvalidOption) as caught:
        options("{creat: always}")
    assert caught.value.__notes__[-1] == "the options here are assert, create, delete, link, mode, node"


@pytest.mark.parametrize(
    ("policy", "sender", "receiver"),
    [
        (AddressPolicy.ALWAYS, True, True),
        (AddressPolicy.SENDER, True, False),
        (AddressPolicy.RECEIVER, False, True),
        (AddressPolicy.NEVER, False, False),
    ],
)
def test_policies(policy: AddressPolicy, sender: bool, receiver: bool) -> None:
    assert (policy.applies(sending=True), policy.applies(sending=False)) == (sender, receiver)
