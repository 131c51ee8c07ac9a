"""How drivers call the receivers of subscriptions."""

from __future__ import annotations

import logging

from qmf.bus.base import Binding, DataCallback, MessageCallback, ReceivedMessage

log = logging.getLogger("qmf.bus")


def call_receiver(on_message: MessageCallback, received: ReceivedMessage, binding: Binding) -> None:
    """Pass a message of a subscription to its receiver; if that fails, log why and drop the message."""
    try:
        on_message(received)
    except Exception:
        log.exception("the receiver of %s %r failed; message dropped", binding.exchange, binding.key)
        received.settle()


def call_data_receiver(on_data: DataCallback, messages: list[bytes], binding: Binding) -> None:
    """The same for one that is done with messages when it returns."""
    try:
        on_data(messages)
    except Exception:
        log.exception("the receiver of %s %r failed; messages dropped", binding.exchange, binding.key)
