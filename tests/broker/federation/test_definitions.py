"""Domains and links as consoles ask for them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from qmf.broker.federation.definitions import read_domain, read_link, split_link_fields
from qmf.broker.operations.forwarders import ForwardingError
from qmf.broker.operations.forwarding import LinkDirection
from qmf.broker.operations.principal import BROKER, Principal
from qmf.bus.url import BusUrl

IN, OUT = LinkDirection.INCOMING, LinkDirection.OUTGOING

LINK = {"domain": "peer", "source": "here", "target": "there"}


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("one", [BusUrl("one")]),
        ("amqp://one:5673,amqps://two", [BusUrl("one", 5673), BusUrl("two", 5671, tls=True)]),
        (["one", "amqps://two:1"], [BusUrl("one"), BusUrl("two", 1, tls=True)]),
        ("amqp:tcp:one:5672, tcp:two:5673", [BusUrl("one", 5672), BusUrl("two", 5673)]),
        ("amqp:ann/secret@tcp:one:1", [BusUrl("one", 1, username="ann", password="secret")]),
        ("ssl:one:5671", [BusUrl("one", 5671, tls=True)]),
        ("amqp:[::1]:7", [BusUrl("::1", 7)]),
    ],
    ids=["host", "several", "list", "qpidd", "user", "ssl", "ipv6"],
)
def test_urls(url: object, expected: list[BusUrl]) -> None:
    domain = read_domain("peer", {"url": url}, strict=True)
    assert domain.urls == tuple(expected)
    assert domain.url == ",".join(map(str, expected))


def test_a_domain_has_a_user_for_urls_without_one() -> None:
    properties = {"url": "bob@one,two", "username": "ann", "password": "secret", "sasl_mechanisms": "PLAIN, EXTERNAL"}
    domain = read_domain("peer", {**properties, "durable": "true", "max_ssf": 0, "sasl_service": "amqp"}, strict=True)
    assert [domain.login(url).username for url in domain.urls] == ["bob", "ann"]
    assert domain.login(domain.urls[1]).password == "secret"
    assert (domain.mechanisms, domain.durable) == (("PLAIN", "EXTERNAL"), True)
    assert "secret" not in repr(domain)


@pytest.mark.parametrize(
    ("properties", "error"),
    [
        ({}, "A url is required for a domain!"),
        ({"url": ""}, "A url is required for a domain!"),
        ({"url": 5}, "invalid-argument: url: must be a text or a list of texts"),
        ({"url": ["amqp://ann:secret@one", 5]}, "invalid-argument: url: must be a text or a list of texts"),
        ({"url": "one", "password": True}, "invalid-argument: password: must be text"),
        ({"url": "one,"}, "invalid-argument: url: '' is not a bus URL: the host is missing"),
        ({"url": "amqp://ann:secret@one:x"}, "invalid-argument: url: 'amqp://ann:***@one:x' is not a bus URL"),
        ({"url": "one", "durable": "perhaps"}, "invalid-argument: durable: must be true or false"),
        ({"url": "one", "sasl_mechanisms": "none"}, "invalid-argument: sasl_mechanisms: connections without SASL"),
        ({"url": "amqps://one,two", "min_ssf": 1}, "invalid-argument: min_ssf: amqp://two:5672 has no TLS"),
        ({"url": "one", "colour": "red", "size": 1}, "invalid-argument: colour, size: unknown"),
    ],
)
def test_domains_that_are_refused(properties: Mapping[str, object], error: str) -> None:
    with pytest.raises(ForwardingError) as caught:
        read_domain("peer", properties, strict=True)
    assert str(caught.value).startswith(error)


def test_a_password_of_digits() -> None:
    domain = read_domain("peer", {"url": "one", "username": "ann", "password": 1234})
    assert domain.login(domain.urls[0]).password == "1234"


def test_unknown_properties_are_ignored_unless_they_are_to_be_refused() -> None:
    assert read_domain("peer", {"url": "one", "colour": "red"}).urls == (BusUrl("one"),)


def test_the_node_of_this_broker() -> None:
    assert read_link(IN, "link", LINK, BROKER).node == "there"
    assert read_link(OUT, "link", LINK, BROKER).node == "here"


def test_the_store_keeps_all_of_a_link() -> None:
    properties = {**LINK, "durable": True, "key": "a.#", "selector": "n = 1", "max_hops": "7", "qpid.max_count": 5}
    made = read_link(OUT, "link", properties, Principal("ann", "127.0.0.1:5", "AMQP 1.0"))
    found = read_link(OUT, "link", *split_link_fields(made.fields))
    for name in ("name", "direction", "domain", "source", "target", "durable", "key", "selector", "queue", "max_hops"):
        assert getattr(found, name) == getattr(made, name), name
    assert (found.principal, found.container, found.properties) == (made.principal, made.container, made.properties)
    assert (made.max_hops, read_link(OUT, "link", *split_link_fields(LINK)).max_hops) == (7, 32)
    assert made.container != read_link(OUT, "link", properties, BROKER).container


@pytest.mark.parametrize(
    ("direction", "properties", "error"),
    [
        (IN, {"source": "a", "target": "b"}, "Domain must be specified"),
        (IN, {"domain": "peer", "target": "b"}, "invalid-argument: source: is missing"),
        (OUT, {"domain": "peer", "source": "b"}, "invalid-argument: target: is missing"),
        (OUT, {**LINK, "key": 5}, "invalid-argument: key: must be text, not 5"),
        (OUT, {**LINK, "max_hops": 0}, "invalid-argument: max_hops: must be 1 or more, not 0"),
        (IN, {**LINK, "max_hops": "-1"}, "invalid-argument: max_hops: must be a number from 0, not '-1'"),
        (OUT, {**LINK, "colour": "red"}, "invalid-argument: colour: unknown"),
        (
            IN,
            {**LINK, "qpid.max_count": 5},
            "invalid-argument: qpid.max_count: an incoming link has no queue of its own",
        ),
    ],
)
def test_links_that_are_refused(direction: LinkDirection, properties: Mapping[str, object], error: str) -> None:
    with pytest.raises(ForwardingError) as caught:
        read_link(direction, "link", properties, BROKER, strict=True)
    assert str(caught.value).startswith(error)
