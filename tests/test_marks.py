"""The marks of what agents and consoles create."""

from __future__ import annotations

import pytest

from qmf._marks import OWN_CONNECTION, is_own_connection, is_own_name, receiving_link_name, sending_link_name


def test_names_of_links_and_of_the_queues_that_brokers_name_after_them() -> None:
    for name in (receiving_link_name(), receiving_link_name(7), sending_link_name()):
        assert is_own_name(name)
        assert is_own_name(f"container_{name}")
        assert is_own_name(f"my_program\n_{name}")
    assert receiving_link_name() != receiving_link_name()


@pytest.mark.parametrize(
    "name", ["", "orders", "qmf-in-", "qmf-in-orders", "orders-qmf-in-1", "qmf-in-1_orders", "qmf-1_orders_1"]
)
def test_names_of_others(name: str) -> None:
    assert not is_own_name(name)


def test_connections() -> None:
    assert is_own_connection({OWN_CONNECTION: True, "product": "qmf"})
    for other in ({"product": "qmf"}, {}, None, "x"):
        assert not is_own_connection(other)
