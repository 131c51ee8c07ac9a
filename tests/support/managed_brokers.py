"""Brokers that management tools are tried on: the embedded one, and the qpidd that QMF_TEST_QPIDD names."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from support.brokers import EMBEDDED, URLS

from qmf.broker import EmbeddedBroker

#: Those that there are: parameters of tests.
NAMES = (EMBEDDED, *(["qpidd"] if URLS["qpidd"] else []))

#: Seconds between publications that don't come into any test.
NEVER = 3600.0


@contextmanager
def managed_broker(name: str) -> Iterator[str]:
    """A broker with management; its URL."""
    if name != EMBEDDED:
        yield URLS[name]
        return
    with EmbeddedBroker(management=NEVER) as broker:
        yield broker.url


def unique(name: str) -> str:
    """A name that no other test uses on a broker that they share."""
    return f"{name}-{uuid.uuid4().hex[:12]}"
