"""Arguments of addBroker."""

from __future__ import annotations

from pathlib import Path

import pytest

from qmf.console import BrokerURL
from qmf.console.broker_options import read_options
from qmf.errors import CallerError, ConstraintError, NotFoundError


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


def test_passwords_are_not_shown() -> None:
    for options in (
        read_options("ann/very-secret@h:1", None, None, None, {}),
        read_options("h:1", None, None, None, {"username": "ann", "password": "very-secret"}),
    ):
        assert options.password == "very-secret"
        assert "very-secret" not in f"{options!r} {options.url!r} {options.url}"
