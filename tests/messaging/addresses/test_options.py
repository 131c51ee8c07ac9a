"""Options of addresses are checked by name and type."""

from __future__ import annotations

import pytest

from qmf.messaging.addresses import Address
from qmf.messaging.addresses.options import (
    AddressOptions,
    BindingOptions,
    DeclareOptions,
    FilterOptions,
    LinkOptions,
    Mode,
    NodeOptions,
    NodeType,
    Policy,
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
        create=Policy.ALWAYS,
        assert_=Policy.RECEIVER,
        delete=Policy.SENDER,
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
        ("{creat: always}", "option creat: unknown; the options here are assert, create, delete, link, mode, node"),
        ("{create: sometimes}", "option create: must be always, sender, receiver or never, not 'sometimes'"),
        ("{mode: peek}", "option mode: must be consume or browse, not 'peek'"),
        ("{node: queue}", "option node: must be a map in braces, not 'queue'"),
        ("{node: {type: list}}", "option node.type: must be queue or topic, not 'list'"),
        ("{node: {durable: 1}}", "option node.durable: must be True or False, not 1"),
        ("{node: {colour: red}}", "option node.colour: unknown"),
        ("{node: {capabilities: [1]}}", "option node.capabilities: must be a name or a list of names, not [1]"),
        ("{node: {x-declare: {type: 1}}}", "option node.x-declare.type: must be text, not 1"),
        ("{node: {x-bindings: {}}}", "option node.x-bindings: must be a list of maps, not {}"),
        ("{node: {x-bindings: [1]}}", "option node.x-bindings[0]: must be a map in braces, not 1"),
        ("{node: {x-bindings: [{}, {keys: k}]}}", "option node.x-bindings[1].keys: unknown"),
        ("{link: {timeout: True}}", "option link.timeout: must be a number of seconds, not True"),
        ("{link: {timeout: -1}}", "option link.timeout: must not be negative, not -1"),
        ("{link: {reliability: high}}", "option link.reliability: must be unreliable, at-most-once"),
        ("{link: {filter: {name: x}}}", "option link.filter[0]: a filter has a name, a descriptor"),
    ],
)
def test_faults_name_the_option(text: str, message: str) -> None:
    with pytest.raises(InvalidOption) as caught:
        options(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("policy", "sender", "receiver"),
    [
        (Policy.ALWAYS, True, True),
        (Policy.SENDER, True, False),
        (Policy.RECEIVER, False, True),
        (Policy.NEVER, False, False),
    ],
)
def test_policies(policy: Policy, sender: bool, receiver: bool) -> None:
    assert (policy.applies(sending=True), policy.applies(sending=False)) == (sender, receiver)
