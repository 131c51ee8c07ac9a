"""The constants of the published API (`qpid.messaging.constants`)."""

from __future__ import annotations

from typing import Final

from qmf.bus.url import AMQP_PORT as _AMQP_PORT
from qmf.bus.url import AMQPS_PORT as _AMQPS_PORT

#: Ports of AMQP without and with TLS.
AMQP_PORT: Final = _AMQP_PORT
AMQPS_PORT: Final = _AMQPS_PORT


class Constant:
    """A named value that is compared by identity.

    Attributes:
        name: the constant's name in the API.
        value: what it stands for, as the published API has it.
    """

    def __init__(self, name: str, value: object = None) -> None:
        self.name = name
        self.value = value

    def __repr__(self) -> str:
        return self.name


#: A capacity without limit.
UNLIMITED: Final = Constant("UNLIMITED", 0xFFFFFFFF)
#: Type of a `Disposition`: the receiver did not process the message, and could not; the broker may discard it.
REJECTED: Final = Constant("REJECTED")
#: Type of a `Disposition`: the message returns to its queue and can be delivered again.
RELEASED: Final = Constant("RELEASED")
