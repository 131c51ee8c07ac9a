"""Options of a connection, as programs for the published API give them."""

from __future__ import annotations

from typing import Any

import pytest

from qmf.messaging import Connection, ConnectionError
from qmf.messaging.options import read_options
from qmf.messaging.util import URL


class Place:
    """An object whose text is a URL."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text


def test_an_object_may_stand_for_its_text() -> None:
    options = read_options(Place("ann/secret@a:7"), {"reconnect_urls": [Place("b"), URL(host="c", port=9)]})
    assert [(url.host, url.port) for url in options.urls] == [("a", 7), ("b", 5672), ("c", 9)]
    assert (options.urls[0].username, options.urls[0].password) == ("ann", "secret")


@pytest.mark.parametrize("url", [5672, b"host", ["host"], 1.5])
def test_what_has_no_such_text_is_refused(url: Any) -> None:
    with pytest.raises(ConnectionError, match="option url: must be a URL, not"):
        Connection(url)


def test_names_with_dashes() -> None:
    options = read_options("a", {"reconnect-interval-max": 7, "tcp-nodelay": True, "client-properties": {"x": 1}})
    assert (options.reconnect.interval_max, options.properties) == (7.0, {"x": 1})


@pytest.mark.parametrize("name", ["tcp", "tcp+tls", "ssl"])
def test_names_of_transports(name: str) -> None:
    assert read_options("a", {"transport": name}).urls[0].tls is (name != "tcp")


def test_a_port_that_is_none_fails_when_the_connection_is_opened() -> None:
    connection = Connection("127.0.0.1:0")
    with pytest.raises(ConnectionError):
        connection.open(timeout=10)
    connection.close()


def test_a_broker_is_reached_by_an_object(embedded: str) -> None:
    with Connection.establish(URL(embedded), timeout=10, tcp_nodelay=True, transport="tcp") as connection:
        assert connection.attached()
