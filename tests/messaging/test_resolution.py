"""What addresses ask of each kind of broker."""

from __future__ import annotations

import pytest

from qmf.bus.engine.resumption import LINK_RESUMPTION
from qmf.bus.engine.values import DescribedProperty, Durability, ExpiryPolicy, Filter, Terminus
from qmf.messaging import Address, InvalidOption
from qmf.messaging.resolution import ARTEMIS, EMBEDDED, QPIDD, RABBITMQ, LinkRequest, resolve

QPID = "qpid-cpp"
SELECTOR = "apache.org:selector-filter:string"


def terminus(text: str, *, sending: bool, product: str = QPID) -> Terminus:
    return resolve(Address(text), sending=sending, product=product).terminus


def test_a_plain_name() -> None:
    for sending in (True, False):
        assert terminus("queue", sending=sending) == Terminus("queue")
        assert terminus("queue", sending=sending, product="") == Terminus("queue")


def test_names_of_links() -> None:
    assert resolve(Address("q; {link: {name: mine}}"), sending=True, product=QPID).name == "mine"
    one, two = (resolve(Address("q"), sending=True, product=QPID).name for _ in range(2))
    assert one.startswith("q_")
    assert one != two


@pytest.mark.parametrize(
    ("text", "capabilities", "properties"),
    [
        ("q; {create: always}", ("create-on-demand",), {}),
        ("q; {create: sender}", ("create-on-demand",), {}),
        ("q; {create: receiver}", (), {}),
        (
            "q; {create: always, node: {type: queue, durable: True}}",
            ("create-on-demand", "queue", "durable"),
            {"supported-dist-modes": "move", "durable": True},
        ),
        (
            "q; {assert: always, node: {type: topic, x-declare: {type: fanout}}}",
            ("topic",),
            {"supported-dist-modes": "copy", "exchange-type": "fanout"},
        ),
        (
            "q; {create: always, node: {x-declare: {exclusive: True, auto-delete: False, alternate-exchange: a,"
            " arguments: {'qpid.max_count': 5}}}}",
            ("create-on-demand",),
            {"exclusive": True, "auto-delete": False, "alternate-exchange": "a", "qpid.max_count": 5},
        ),
        (
            "q; {create: always, node: {properties: {lifetime-policy: delete-if-empty}}}",
            ("create-on-demand",),
            {"lifetime-policy": DescribedProperty("amqp:delete-on-no-messages:list", [])},
        ),
        (
            "q; {create: always, delete: always}",
            ("create-on-demand",),
            {"lifetime-policy": DescribedProperty("amqp:delete-on-close:list", [])},
        ),
        ("q; {node: {type: queue, durable: True}}", ("queue", "durable"), {}),
        ("q; {node: {capabilities: [shared]}}", ("shared",), {}),
    ],
)
def test_nodes_of_senders(text: str, capabilities: tuple[str, ...], properties: dict[str, object]) -> None:
    found = terminus(text, sending=True)
    assert (found.capabilities, found.properties) == (capabilities, properties)


def test_special_names() -> None:
    found = terminus("#", sending=False)
    assert (found.address, found.dynamic) == (None, True)
    assert found.properties == {"lifetime-policy": DescribedProperty("amqp:delete-on-close:list", [])}
    assert terminus("<null>", sending=True) == Terminus()


def test_sources() -> None:
    assert terminus("q; {mode: browse}", sending=False) == Terminus("q", browse=True)
    assert terminus("q/a.*.b", sending=False).filters == (
        Filter("subject-filter", "apache.org:legacy-amqp-topic-binding:string", "a.*.b"),
    )
    assert terminus("q/a*b", sending=False).filters == (
        Filter("subject-filter", "apache.org:legacy-amqp-direct-binding:string", "a*b"),
    )
    text = "q; {link: {selector: 'a = 1', filter: [{name: n, descriptor: 7, value: v}]}}"
    assert terminus(text, sending=False).filters == (Filter("selector", SELECTOR, "a = 1"), Filter("n", 7, "v"))
    assert terminus("q/a", sending=True).filters == ()
    found = terminus("q; {link: {durable: True, timeout: 120}}", sending=False)
    assert (found.durability, found.timeout) == (Durability.UNSETTLED_STATE, 120)
    found = terminus("q; {link: {durable: True}}", sending=False)
    assert (found.durability, found.expiry) == (Durability.UNSETTLED_STATE, ExpiryPolicy.NEVER)


@pytest.mark.parametrize(
    ("text", "sending", "settled"),
    [
        ("q", True, False),
        ("q; {mode: browse}", False, True),
        ("q; {link: {reliability: unreliable}}", True, True),
        ("q; {link: {reliability: at-most-once}}", False, True),
        ("q; {mode: browse, link: {reliability: at-least-once}}", False, False),
    ],
)
def test_reliability(text: str, sending: bool, settled: bool) -> None:
    request = resolve(Address(text), sending=sending, product=QPID)
    assert isinstance(request, LinkRequest)
    assert request.settled is settled


@pytest.mark.parametrize("text", ["q; {node: {properties: {a: 1}}}", "<null>; {node: {properties: {a: 1}}}"])
@pytest.mark.parametrize("sending", [True, False])
def test_properties_of_a_node_that_nobody_creates_are_refused(text: str, sending: bool) -> None:
    with pytest.raises(InvalidOption, match=r"node\.properties has no effect without the option create or assert"):
        terminus(text, sending=sending)


@pytest.mark.parametrize("policy", ["create: sender", "create: receiver", "assert: always"])
@pytest.mark.parametrize("sending", [True, False])
def test_properties_are_for_the_side_that_creates_or_asserts(policy: str, sending: bool) -> None:
    found = terminus(f"q; {{{policy}, node: {{properties: {{a: 1}}}}}}", sending=sending)
    used = policy == "assert: always" or policy.endswith("sender") == sending
    assert found.properties == ({"a": 1} if used else {})


def test_properties_of_a_temporary_node_are_its_own() -> None:
    assert terminus("'#'; {node: {properties: {a: 1}}}", sending=False).properties["a"] == 1


@pytest.mark.parametrize(
    ("options", "product", "expected"),
    [
        ("reliability: at-least-once", QPID, Terminus("t", timeout=120)),
        ("reliability: at-least-once, timeout: 5", QPID, Terminus("t", timeout=5)),
        ("reliability: at-least-once", EMBEDDED, Terminus("t", timeout=120, capabilities=("shared",))),
        ("reliability: at-least-once", ARTEMIS, Terminus("t", capabilities=("queue",))),
        (
            "reliability: at-least-once, durable: True",
            EMBEDDED,
            Terminus("t", durability=Durability.UNSETTLED_STATE, expiry=ExpiryPolicy.NEVER),
        ),
    ],
)
def test_a_subscription_with_at_least_once_outlives_its_link(options: str, product: str, expected: Terminus) -> None:
    address = Address(f"t; {{link: {{{options}}}}}")
    request = resolve(address, sending=False, product=product)
    assert request.terminus == expected
    assert (request.settled, request.unsettled, request.lasting) == (False, True, True)
    sending = resolve(address, sending=True, product=product)
    assert (sending.terminus.capabilities, sending.unsettled) == (("queue",) if product == ARTEMIS else (), False)


def test_on_artemis_it_is_durable() -> None:
    found = terminus("t; {node: {type: topic}, link: {reliability: at-least-once}}", sending=False, product=ARTEMIS)
    assert (found.durability, found.expiry) == (Durability.UNSETTLED_STATE, ExpiryPolicy.NEVER)


@pytest.mark.parametrize(
    "text",
    [
        "t",
        "t; {link: {reliability: unreliable}}",
        "t; {mode: browse, link: {reliability: at-least-once}}",
        "'#'; {link: {reliability: at-least-once}}",
    ],
)
def test_others_end_with_their_link(text: str) -> None:
    request = resolve(Address(text), sending=False, product=QPID)
    assert (request.terminus.timeout, request.unsettled, request.lasting) == (0, False, False)


def test_artemis() -> None:
    assert terminus("q", sending=True, product=ARTEMIS) == Terminus("q", capabilities=("queue",))
    assert terminus("t; {node: {type: topic}}", sending=True, product=ARTEMIS).capabilities == ("topic",)
    found = terminus("q/it's; {link: {selector: 'a = 1'}}".replace("'s", r"\'s"), sending=False, product=ARTEMIS)
    assert found.filters == (Filter("jms-selector", SELECTOR, "(a = 1) AND JMSType = 'it''s'"),)


@pytest.mark.parametrize(
    ("text", "sending", "address"),
    [
        ("q", True, "/amq/queue/q"),
        ("q; {create: always}", False, "/queue/q"),
        ("q; {create: receiver}", True, "/amq/queue/q"),
        ("amq.topic/a.*", False, "/exchange/amq.topic/a.*"),
        ("amq.topic", False, "/exchange/amq.topic/#"),
        ("amq.topic/a", True, "/exchange/amq.topic"),
        ("t; {node: {type: topic}}", True, "/exchange/t"),
        (r"a\/b", True, "/amq/queue/a%2Fb"),
        ("'/queue/amq.gen-1'", True, "/queue/amq.gen-1"),
    ],
)
def test_rabbitmq(text: str, sending: bool, address: str) -> None:
    assert terminus(text, sending=sending, product=RABBITMQ).address == address


def test_exactly_once_needs_a_broker_that_keeps_the_state_of_links() -> None:
    address = Address("q; {link: {reliability: exactly-once, timeout: 20}}")
    request = resolve(address, sending=True, product=EMBEDDED, capabilities=[LINK_RESUMPTION])
    assert not request.settled
    assert request.terminus.timeout == 20
    with pytest.raises(InvalidOption) as caught:
        resolve(address, sending=True, product=QPID, capabilities=["ANONYMOUS-RELAY"])
    assert caught.value.text == (
        "address 'q; {link: {reliability: exactly-once, timeout: 20}}', link.reliability: exactly-once is not "
        "supported by qpid-cpp: it does not offer qmf.link-resumption, to keep the state of lost links"
    )


@pytest.mark.parametrize(
    ("text", "product", "option"),
    [
        ("q; {node: {x-bindings: [{exchange: e}]}}", ARTEMIS, "x-bindings"),
        ("q; {delete: always}", RABBITMQ, "delete"),
        ("q; {link: {x-subscribe: {a: 1}}}", QPID, "link.x-subscribe"),
        ("q; {node: {properties: {a: 1}}}", ARTEMIS, "node.properties"),
        ("q; {create: always, node: {properties: {a: 1}}}", RABBITMQ, "node.properties"),
        ("q; {link: {x-declare: {a: 1}}}", QPID, "link.x-declare"),
        ("q/a.*", ARTEMIS, "subject 'a.*': wildcards"),
        ("q; {node: {x-declare: {type: direct}}}", ARTEMIS, "node.x-declare"),
        ("q; {mode: browse}", RABBITMQ, "mode: browse"),
        ("q; {link: {selector: 'a = 1'}}", RABBITMQ, "link.selector"),
        ("<null>", RABBITMQ, "address '<null>'"),
    ],
)
def test_what_a_broker_cannot_do_is_refused_by_name(text: str, product: str, option: str) -> None:
    with pytest.raises(InvalidOption) as caught:
        resolve(Address(text), sending=False, product=product)
    message = str(caught.value)
    assert option in message
    assert message.endswith(f"is not supported by {product}")
    assert "\n" not in message


@pytest.mark.parametrize("product", [QPIDD, ARTEMIS, RABBITMQ])
def test_a_start_is_refused_where_the_broker_has_none(product: str) -> None:
    address = Address("q; {link: {start: tail}}")
    with pytest.raises(InvalidOption, match=r"link\.start"):
        resolve(address, sending=False, product=product)
