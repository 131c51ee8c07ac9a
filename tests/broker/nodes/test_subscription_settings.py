"""Settings of the queues of subscriptions."""

from __future__ import annotations

import attrs

from qmf.broker.nodes.settings import Lifetime, OverflowPolicy, QueueLimits
from qmf.broker.nodes.subscription_settings import SubscriptionSettings


def test_queues_drop_their_oldest_messages_and_may_go_with_their_link() -> None:
    settings = SubscriptionSettings(QueueLimits(7, 8))
    lasting = settings.lasting
    assert (lasting.exclusive, lasting.auto_delete, lasting.overflow) == (True, False, OverflowPolicy.RING)
    assert (lasting.limits, lasting.keeps_large) == (QueueLimits(7, 8), True)
    wanted = attrs.evolve(lasting, auto_delete=True, lifetime=Lifetime.ON_CLOSE)
    assert settings.until_close(lasting) == wanted
    assert settings.until_close(lasting) is settings.until_close(lasting)
    other = attrs.evolve(lasting, excluded="me")
    assert settings.until_close(other) == attrs.evolve(wanted, excluded="me")
