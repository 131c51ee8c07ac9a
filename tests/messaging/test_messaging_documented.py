"""The tables of docs/coming-from-qpid-messaging.md name the whole published API, and say of each name what is true."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from qmf import messaging
from qmf.messaging import Connection, Disposition, Endpoint, InvalidOption, Message
from qmf.messaging.addresses import Address

PAGE = Path(__file__).parents[2] / "docs/coming-from-qpid-messaging.md"

#: All that programs can see of the published package, by sections of the page.
PUBLISHED = {
    "Package": """
        Connection Session Sender Receiver Endpoint Message Disposition
        AMQP_PORT AMQPS_PORT UNLIMITED REJECTED RELEASED Constant uuid4 timestamp Serial
        Timeout MessagingError InternalError
        ConnectionError ConnectError VersionError AuthenticationFailure ConnectionClosed HeartbeatTimeout
        SessionError Detached NontransactionalSession TransactionError TransactionAborted TransactionUnknown
        UnauthorizedAccess ServerError SessionClosed
        LinkError InsufficientCapacity AddressError MalformedAddress InvalidOption ResolutionError AssertionFailed
        NotFound LinkClosed SenderError SendError TargetCapacityExceeded ReceiverError FetchError Empty
        ContentError EncodeError DecodeError
    """,
    "Endpoint": "error get_error check_error check_closed set_async_exception_notify_handler",
    "Connection": """
        establish open opened attach attached detach close session host transport port heartbeat username password
        sasl_mechanisms sasl_service sasl_min_ssf sasl_max_ssf reconnect reconnect_timeout reconnect_interval
        reconnect_interval_min reconnect_interval_max reconnect_limit reconnect_urls reconnect_log address_ttl
        tcp_nodelay ssl_keyfile ssl_certfile ssl_trustfile ssl_skip_hostname_check client_properties protocol
        options id sessions session_counter auth_username
    """,
    "Session": """
        connection name transactional senders receivers closed sender receiver next_receiver acknowledge commit rollback
        sync close ack_capacity set_message_received_handler set_message_received_notify_handler
        closing committing committed aborting aborted incoming outgoing acked unacked log_id next_sender_id
        next_receiver_id
    """,
    "Sender": """
        session target capacity durable linked closed send sync close unsettled available threshold
        id options queued synced acked closing
    """,
    "Receiver": """
        session source capacity threshold linked closed fetch close unsettled available
        id options granted draining impending received returned closing
    """,
    "Message, Disposition": """
        Message.id Message.subject Message.user_id Message.reply_to Message.correlation_id Message.durable
        Message.priority Message.ttl Message.redelivered Message.properties Message.content_type Message.content
        Disposition.type Disposition.options
    """,
    "Modules": """
        address.parse address.ParseError address.lex address.AddressLexer address.AddressParser
        util.URL util.auto_fetch_reconnect_urls util.set_reconnect_urls
        log.enable log.DEBUG log.INFO log.WARN log.ERROR log.CRITICAL
    """,
    "Options of addresses": """
        create assert delete mode node.type node.durable node.x-declare node.x-bindings
        link.name link.durable link.reliability link.x-declare link.x-bindings link.x-subscribe
    """,
}
STATES = ("same", "differs", "absent")


def documented() -> dict[str, dict[str, str]]:
    """The state of each name, by sections of the page."""
    found: dict[str, dict[str, str]] = {}
    section = ""
    for line in PAGE.read_text().splitlines():
        if line.startswith("### "):
            section = line.removeprefix("### ")
        elif line.startswith("| `") and section:
            names, state, _ = line.strip("|").split("|")
            states = found.setdefault(section, {})
            for name in re.findall(r"`([^`]+)`", names):
                assert name not in states, f"{section}: {name} is listed twice"
                states[name] = state.strip()
    return found


DOCUMENTED = documented()
NAMES = [(section, name) for section in PUBLISHED for name in DOCUMENTED.get(section, {})]


@pytest.mark.parametrize("section", PUBLISHED)
def test_all_names_are_in_the_tables(section: str) -> None:
    assert sorted(DOCUMENTED[section]) == sorted(PUBLISHED[section].split())
    assert set(DOCUMENTED[section].values()) <= set(STATES)


def exists(section: str, name: str) -> bool:
    owner, _, attribute = name.rpartition(".")
    match section:
        case "Package":
            return name in messaging.__all__ and hasattr(messaging, name)
        case "Endpoint":
            kinds = (messaging.Connection, messaging.Session, messaging.Sender, messaging.Receiver)
            return all(hasattr(kind, name) and issubclass(kind, Endpoint) for kind in kinds)
        case "Message, Disposition":
            return hasattr({"Message": Message(), "Disposition": Disposition(messaging.REJECTED)}[owner], attribute)
        case "Modules":
            return hasattr(importlib.import_module(f"qmf.messaging.{owner}"), attribute)
        case "Options of addresses":
            return is_option(owner, attribute)
        case _:
            return hasattr(getattr(messaging, section), name)


def is_option(owner: str, name: str) -> bool:
    """True if an address may have the option."""
    values = {"mode": "browse", "type": "queue", "durable": "True", "x-declare": "{}", "x-bindings": "[]"}
    values |= {"name": "x", "reliability": "at-least-once", "x-subscribe": "{}"}
    option = f"{name}: {values.get(name, 'always')}"
    try:
        Address(f"node; {{{f'{owner}: {{{option}}}' if owner else option}}}").options  # noqa: B018
    except InvalidOption:
        return False
    return name != "x-subscribe"  # which is read, to be refused by each broker


@pytest.mark.parametrize(("section", "name"), NAMES)
def test_the_state_is_true(section: str, name: str) -> None:
    assert exists(section, name) == (DOCUMENTED[section][name] != "absent")


def test_every_option_of_a_connection_can_be_given_and_read(tmp_path: Path) -> None:
    """Those of TLS are read with TLS alone."""
    values: dict[str, object] = {
        "transport": "tcp",
        "port": 7,
        "heartbeat": 5,
        "username": "ann",
        "password": "secret",
        "sasl_mechanisms": "PLAIN",
        "sasl_service": "other",
        "sasl_min_ssf": 1,
        "sasl_max_ssf": 2,
        "reconnect": True,
        "reconnect_timeout": 10,
        "reconnect_interval": 3,
        "reconnect_interval_min": 1.5,
        "reconnect_interval_max": 2.5,
        "reconnect_limit": 4,
        "reconnect_urls": ["b", "c"],
        "reconnect_log": False,
        "address_ttl": 5,
        "tcp_nodelay": True,
        "ssl_keyfile": str(tmp_path),
        "ssl_certfile": str(tmp_path),
        "ssl_trustfile": str(tmp_path),
        "ssl_skip_hostname_check": True,
        "client_properties": {"a": 1},
        "protocol": "amqp1.0",
    }
    connection = Connection(host="a", **values)
    assert {name: getattr(connection, name) for name in values} == values
    assert connection.host == "a"
    assert set(values) | {"host"} == {
        name for name, state in DOCUMENTED["Connection"].items() if name in OPTIONS and state != "absent"
    }


#: Names of the table that are no options.
_OTHERS = "establish open opened attach attached detach close session options id sessions session_counter auth_username"
OPTIONS = set(PUBLISHED["Connection"].split()) - set(_OTHERS.split())
