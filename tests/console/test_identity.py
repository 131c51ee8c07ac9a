"""Names and descriptions of the published API: keys, ids, URLs, schemas, printed forms, arguments."""

from __future__ import annotations

from uuid import UUID

import pytest

from qmf.bus import UrlError
from qmf.console import BrokerURL, ClassKey, ObjectId
from qmf.errors import CallerError
from qmf.protocol import ObjectId as CoreId

HASH = "3db4e911-1b6b-1523-a48b-6855f4c5627b"
PRINTED = f"org.apache.qpid.broker:queue:_data({HASH})"


@pytest.mark.parametrize("text", [PRINTED, f"org.apache.qpid.broker:queue({HASH})"])
def test_a_class_key_is_read_from_its_printed_form(text: str) -> None:
    key = ClassKey(text)
    assert (key.getPackageName(), key.getClassName()) == ("org.apache.qpid.broker", "queue")
    assert (key.getHash(), key.getHashString()) == (UUID(HASH), HASH)
    assert key.getType() == ClassKey.TYPE_DATA
    assert key.getPackageKey() == ("queue", UUID(HASH))
    assert repr(key) == PRINTED
    assert ClassKey(key.asMap()) == key
    assert hash(ClassKey(key.asMap())) == hash(key)
    assert key != "x"


@pytest.mark.parametrize("wrong", ["", "a:b", f"a:b:_what({HASH})", f"a:b({HASH[:-1]})", {}, {"_package_name": "a"}])
def test_what_is_no_class_key_is_refused(wrong: str | dict[str, object]) -> None:
    with pytest.raises(CallerError, match="is not a class key"):
        ClassKey(wrong)


def test_an_object_id_has_the_published_form() -> None:
    oid = ObjectId.create("a:b:c", "pkg:queue:x", 3)
    assert repr(oid) == oid.index() == "0-3-1-a:b:c-pkg:queue:x"
    assert (oid.getFlags(), oid.getSequence(), oid.getBrokerBank()) == (0, 3, 1)
    assert (oid.getAgentBank(), oid.getObject(), oid.isDurable(), oid.isV2) == ("a:b:c", "pkg:queue:x", False, True)
    assert oid.asMap() == {"_agent_name": "a:b:c", "_object_name": "pkg:queue:x", "_agent_epoch": 3}
    assert ObjectId(oid.asMap()) == oid
    assert oid.core == CoreId("pkg:queue:x", "a:b:c", 3)


def test_agent_0_is_the_broker() -> None:
    oid = ObjectId.create("0", "x")
    assert oid.core == CoreId("x", "broker")
    assert oid.getV2RoutingKey() == "broker"
    assert oid.isDurable()
    assert oid.asMap() == {"_agent_name": "0", "_object_name": "x"}


def test_object_ids_are_ordered_and_hashable() -> None:
    one, two = ObjectId.create("a", "x"), ObjectId.create("a", "y")
    assert sorted([two, one]) == [one, two]
    assert len({one, ObjectId.create("a", "x"), two}) == 2
    assert one != "x"
    with pytest.raises(CallerError, match="needs an _object_name"):
        ObjectId({"_agent_name": "a"})


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("localhost", ("amqp", "localhost", 5672, None, None)),
        ("h:5000", ("amqp", "h", 5000, None, None)),
        ("amqps://h", ("amqps", "h", 5671, None, None)),
        ("guest/secret@h", ("amqp", "h", 5672, "guest", "secret")),
        ("amqp://u:p@h:1", ("amqp", "h", 1, "u", "p")),
    ],
)
def test_broker_urls(text: str, parts: tuple[object, ...]) -> None:
    url = BrokerURL(text)
    assert (url.scheme, url.host, url.port, url.authName, url.authPass) == parts
    assert str(url) == url.name() == f"{parts[1]}:{parts[2]}"
    assert url == BrokerURL(f"{url.host}:{url.port}")
    assert len({url, BrokerURL(str(url))}) == 1


def test_a_broker_url_matches_addresses() -> None:
    assert BrokerURL("127.0.0.1:5").match("127.0.0.1", 5)
    assert not BrokerURL("127.0.0.1:5").match("127.0.0.1", 6)
    assert str(BrokerURL("[::1]:5")) == "[::1]:5"
    with pytest.raises(UrlError):
        BrokerURL("amqp://")
