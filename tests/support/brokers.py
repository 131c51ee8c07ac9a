"""Brokers of others that the environment names: their URLs, and marks for tests that need one.

QMF_TEST_QPIDD, QMF_TEST_ARTEMIS and QMF_TEST_RABBITMQ name an Apache qpidd, an ActiveMQ Artemis, and a RabbitMQ with
the exchanges that docs/brokers.md tells of.
"""

from __future__ import annotations

import os

import pytest

#: URLs by the name of the broker; empty for those that are not there.
URLS = {name: os.environ.get(f"QMF_TEST_{name.upper()}", "") for name in ("qpidd", "artemis", "rabbitmq")}

#: Brokers whose addresses are not qpidd's.
OTHERS = ("artemis", "rabbitmq")

#: A parameter for each of those, skipped where it is not there.
EACH_OTHER = [
    pytest.param(name, marks=pytest.mark.skipif(not URLS[name], reason=f"QMF_TEST_{name.upper()} names no broker"))
    for name in OTHERS
]
