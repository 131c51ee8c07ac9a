from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.managed_brokers import NAMES, managed_broker


@pytest.fixture(scope="module", params=NAMES)
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """A broker with management."""
    with managed_broker(request.param) as found:
        yield found
