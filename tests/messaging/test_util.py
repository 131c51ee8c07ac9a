"""What programs import from `qpid.util` and `qpid.log`."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator

import pytest

from qmf.messaging.log import DEBUG, WARN, enable
from qmf.messaging.util import URL


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("host", (None, None, None, "host", None)),
        ("host:1", (None, None, None, "host", 1)),
        ("amqps://ann/secret@host:7", ("amqps", "ann", "secret", "host", 7)),
        ("ann@[::1]:5", (None, "ann", None, "::1", 5)),
    ],
)
def test_urls(text: str, parts: tuple[object, ...]) -> None:
    url = URL(text)
    assert (url.scheme, url.user, url.password, url.host, url.port) == parts
    assert str(url) == text
    assert url == URL(url) == text
    assert hash(url) == hash(URL(text))
    assert url != 7
    assert "secret" not in repr(url)


@pytest.mark.parametrize("text", ["", "a:b:c", "user@", "host:x", "::1"])
def test_what_is_no_url(text: str) -> None:
    with pytest.raises(ValueError, match="is not"):
        URL(text)


def test_a_url_needs_a_host() -> None:
    with pytest.raises(ValueError, match="host"):
        URL(port=5)


@pytest.fixture
def log() -> Iterator[logging.Logger]:
    """The logger of this API, as it was."""
    logger = logging.getLogger("qmf.messaging")
    level, handlers = logger.level, list(logger.handlers)
    yield logger
    logger.setLevel(level)
    logger.handlers[:] = handlers


@pytest.mark.parametrize("name", ["qpid", "qpid.messaging", "qmf.messaging"])
def test_logs_are_enabled(log: logging.Logger, name: str) -> None:
    file = io.StringIO()
    enable(name, WARN, file)
    log.warning("seen")
    log.info("not seen")
    enable(name, DEBUG, io.StringIO())
    assert file.getvalue().endswith(" WARNING seen\n")
    assert log.level == DEBUG
