"""The brokers of the contract tests: the embedded one, and those of others that the environment names.

QMF_TEST_QPIDD, QMF_TEST_ARTEMIS and QMF_TEST_RABBITMQ name an Apache qpidd, an ActiveMQ Artemis, and a RabbitMQ with
the exchanges that docs/brokers.md tells of.
"""

from __future__ import annotations

import os

#: URLs by the name of the broker; empty for those that are not there.
URLS = {name: os.environ.get(f"QMF_TEST_{name.upper()}", "") for name in ("qpidd", "artemis", "rabbitmq")}

#: Brokers whose addresses are not qpidd's.
OTHERS = ("artemis", "rabbitmq")

#: The broker of this project, started by the tests themselves.
EMBEDDED = "embedded"

#: The brokers that there are: parameters of the contract tests.
NAMES = (EMBEDDED, *(name for name, url in URLS.items() if url))
