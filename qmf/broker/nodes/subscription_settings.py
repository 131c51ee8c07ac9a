"""Settings of the queues of subscriptions: made once for all, since most links that receive have such a queue."""

from __future__ import annotations

import attrs

from qmf.broker.nodes.settings import SUBSCRIPTION_LIMITS, Lifetime, OverflowPolicy, QueueLimits, QueueSettings


class SubscriptionSettings:
    """The settings of one broker.

    Attributes:
        lasting: of queues that stay until they are deleted.
    """

    def __init__(self, limits: QueueLimits) -> None:
        """Make the settings; `limits` are those of all queues. Where they are the usual ones, subscriptions have their
        own.
        """
        usual = QueueLimits()
        self.lasting = QueueSettings(
            exclusive=True,
            limits=QueueLimits(
                SUBSCRIPTION_LIMITS.count if limits.count == usual.count else limits.count,
                SUBSCRIPTION_LIMITS.size if limits.size == usual.size else limits.size,
            ),
            overflow=OverflowPolicy.RING,
            keeps_large=True,
        )
        self._until_close = _until_close(self.lasting)

    def until_close(self, settings: QueueSettings) -> QueueSettings:
        """Any settings, for a queue that is deleted with its link."""
        return self._until_close if settings is self.lasting else _until_close(settings)


def _until_close(settings: QueueSettings) -> QueueSettings:
    return attrs.evolve(settings, auto_delete=True, lifetime=Lifetime.ON_CLOSE)
