"""Objects of brokers, read from answers without a broker."""

from __future__ import annotations

import pytest

from qmf.client import BrokerObject
from qmf.errors import ProtocolError


def test_an_object_without_values() -> None:
    with pytest.raises(ProtocolError, match="has no values"):
        BrokerObject(None, {"_object_id": {}})  # type: ignore[arg-type]
