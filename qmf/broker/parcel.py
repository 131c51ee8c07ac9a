"""A message on its way through the broker: its bytes, which are never changed, and what routing needs to know."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from qmf.codec.message import decode_message


@attrs.frozen(eq=False)
class Parcel:
    """One message.

    Attributes:
        data: the encoded message as it came, and as it will leave.
        to: node that the message names, or None.
        subject: routing key; empty when the message has none.
        headers: application properties, which headers exchanges match.
        expires: time after which nobody wants the message, on the clock of the broker; None for never.
    """

    data: bytes
    to: str | None
    subject: str
    headers: Mapping[str, object]
    expires: float | None

    def expired(self, now: float) -> bool:
        """True when its time to live is over."""
        return self.expires is not None and now >= self.expires


def read_parcel(data: bytes, now: float) -> Parcel:
    """Look at a message that arrived at `now`.

    Raises:
        DecodeError: it is none.
    """
    message = decode_message(data, body=False)
    return Parcel(
        data=data,
        to=message.to,
        subject=message.subject or "",
        headers=message.application_properties,
        expires=None if message.ttl is None else now + message.ttl,
    )
