"""Names and descriptions of the published API: keys, ids, URLs, schemas, printed forms, arguments."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest
from support.scripted_agent import ALARM, PACKAGE, WIDGET

from qmf.bus import UrlError
from qmf.console import BrokerURL, ClassKey, MethodResult, ObjectId, SchemaClass
from qmf.console.broker_options import read_options
from qmf.console.display import date, quoted, severity, value_text
from qmf.console.selection import GET_TIME, select
from qmf.errors import CallerError, ConstraintError, NotFoundError
from qmf.protocol import ObjectId as CoreId
from qmf.schema import TYPES

HASH = "3db4e911-1b6b-1523-a48b-6855f4c5627b"
PRINTED = f"org.apache.qpid.broker:queue:_data({HASH})"


# -- class keys


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


# -- object ids


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


# -- URLs


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


# -- schemas


def test_a_class_is_described_with_codes() -> None:
    view = SchemaClass(WIDGET, ClassKey(WIDGET.key))
    assert repr(view) == f"Table Class: {view.getKey()!r} "
    assert (view.kind, view.getArguments()) == (SchemaClass.CLASS_KIND_TABLE, [])
    name, label, level, _, parent = view.getProperties()
    assert (name.name, name.type, name.access, name.index, name.optional) == ("name", 6, "1", True, False)
    assert (label.access, label.optional, label.maxlen) == ("2", True, 10)
    assert (level.min, level.max) == (1, 9)
    assert (parent.type, parent.refPackage, parent.refClass) == (10, PACKAGE, "widget")
    assert [(item.name, item.type) for item in view.getStatistics()] == [
        ("turns", 4),
        ("load", 3),
        ("loadHigh", 3),
        ("loadLow", 3),
        ("delaySamples", 9),
        ("delayMin", 9),
        ("delayMax", 9),
        ("delayAverage", 9),
    ]
    delay = view.getStatistics()[4]
    assert (delay.unit, delay.desc) == ("nanoseconds", "Delay (Samples)")
    echo, link, stop = view.getMethods()
    assert (repr(echo), echo.desc) == ("echo(sequence, body)", "Says it again")
    assert [(item.name, item.dir, item.default) for item in link.arguments] == [
        ("target", "I", None),
        ("force", "I", False),
        ("made", "O", None),
    ]
    assert repr(stop) == "stop()"
    assert [repr(item) for item in (name, delay, echo.arguments[0])] == ["name", "delaySamples", "sequence"]


def test_an_event_is_described_by_its_arguments() -> None:
    view = SchemaClass(ALARM, ClassKey(ALARM.key))
    assert (view.kind, view.getProperties(), view.getMethods()) == (SchemaClass.CLASS_KIND_EVENT, [], [])
    assert [(item.name, item.type) for item in view.getArguments()] == [("name", 6), ("level", 1), ("since", 8)]
    assert not hasattr(view.getArguments()[0], "dir")
    assert repr(view).startswith("Event Class: ")


# -- printed forms


@pytest.mark.parametrize(
    ("number", "word"),
    [
        *enumerate(["EMER ", "ALERT", "CRIT ", "ERROR", "WARN ", "NOTIC", "INFO ", "DEBUG"]),
        (8, "INV-8"),
        (-1, "INV--1"),
    ],
)
def test_severities(number: int, word: str) -> None:
    assert severity(number) == word


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (True, None, "T"),
        (False, None, "F"),
        (5, None, "5"),
        ("x", None, "x"),
        (1_233_258_799_000_000_000, "absTime", "Thu Jan 29 19:53:19 2009"),
        (5, "deltaTime", "5"),
        ({"a": 1}, "map", "{'a': 1}"),
        (UUID(int=1), "uuid", "00000000-0000-0000-0000-000000000001"),
        (None, None, "None"),
    ],
)
def test_values_are_shown(value: object, kind: str | None, text: str) -> None:
    assert value_text(value, TYPES[kind] if kind else None) == text


def test_dates_and_quotes() -> None:
    assert date(1_233_258_799_000_000_000) == "Thu Jan 29 19:53:19 2009"
    assert (quoted("a b"), quoted("ab")) == ('"a b"', "ab")


def test_a_method_result_prints_and_reads_its_outputs() -> None:
    result = MethodResult(0, "OK", {"body": "Message Body", "sequence": 1})
    assert repr(result) == "OK (0) - {'body': 'Message Body', 'sequence': 1}"
    assert (result.body, result.missing) == ("Message Body", None)
    with pytest.raises(AttributeError):
        _ = result.__wrapped__


# -- arguments


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({}, CallerError, "give one of _class, _key, _schema and _objectId, not none"),
        ({"_class": "a", "_key": ClassKey(PRINTED)}, CallerError, "not _key, _class"),
        ({"_clas": "a"}, NotFoundError, "did you mean _class"),
        ({"_class": 5}, ConstraintError, "argument _class of getObjects"),
        ({"_key": PRINTED}, ConstraintError, "must be a ClassKey"),
        ({"_class": "a", "_agent": "b"}, ConstraintError, "must be a Agent"),
        ({"_class": "a", "_timeout": "soon"}, ConstraintError, "argument _timeout"),
        ({"_key": ClassKey(PRINTED), "_package": "a"}, CallerError, "_package goes with _class, not with _key"),
    ],
)
def test_wrong_arguments_of_get_objects(arguments: dict[str, object], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        select(arguments)


def test_arguments_of_get_objects() -> None:
    oid = ObjectId.create("a", "x")
    chosen = select({"_class": "queue", "_package": "p", "_timeout": 5, "_agent": None, "ref": oid, "name": "q"})
    assert (chosen.name, chosen.package, chosen.timeout) == ("queue", "p", 5.0)
    assert chosen.values == {"ref": oid.core, "name": "q"}
    assert select({"_objectId": oid}).object_id == oid.core
    assert select({"_key": ClassKey(PRINTED)}).class_key == ClassKey(PRINTED).core
    assert select({"_schema": SchemaClass(WIDGET, ClassKey(WIDGET.key))}).class_key == WIDGET.key
    assert select({"_objectId": oid}).timeout == GET_TIME


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"frobnicate": 1}, NotFoundError, "no argument of addBroker 'frobnicate'"),
        ({"client_properties": {}}, CallerError, "AMQP 0-10"),
        ({"service": "x"}, ConstraintError, "must be 'qpidd'"),
        ({"heartbeat": -1}, ConstraintError, "above 0"),
        ({"ssl_certfile": "x"}, CallerError, "need a URL that starts with amqps://"),
    ],
)
def test_wrong_arguments_of_add_broker(arguments: dict[str, object], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        read_options("localhost", None, None, None, arguments)


def test_tls_files_must_be_there(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing.pem")
    with pytest.raises(CallerError, match="cannot use the TLS files"):
        read_options("amqps://h", None, None, None, {"ssl_certfile": missing})
    with pytest.raises(CallerError, match="ssl_keyfile needs ssl_certfile"):
        read_options("amqps://h", None, None, None, {"ssl_keyfile": missing})


def test_arguments_of_add_broker() -> None:
    options = read_options("u/p@h:1", 5, "PLAIN ANONYMOUS", 30, {"heartbeat": 7, "service": "qpidd"})
    assert (options.timeout, options.session_timeout, options.heartbeat) == (5.0, 30.0, 7.0)
    assert (options.mechanisms, options.username, options.password) == (("PLAIN", "ANONYMOUS"), "u", "p")
    defaults = read_options(BrokerURL("h"), None, None, None, {"username": "x"})
    assert (defaults.timeout, defaults.session_timeout, defaults.mechanisms) == (10.0, 60.0, None)
    assert (defaults.username, defaults.tls) == ("x", None)
    for wrong in (0, -1, "soon", float("nan")):
        with pytest.raises(ConstraintError, match="argument timeout of addBroker"):
            read_options("h", wrong, None, None, {})  # type: ignore[arg-type]
    secure = read_options("amqps://h", None, None, None, {"ssl_skip_hostname_check": True}).tls
    assert secure is not None
    assert not secure.check_hostname
