"""The marks of what agents and consoles create on a broker, so that tools can tell it from what applications create.

Brokers name the queue of a subscription after the link that it belongs to, so the names of our links are the mark of
links, queues, bindings and subscriptions; connections have a property. Programs that use `qmf.messaging` are
applications: their links have no mark.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping

#: The connection property that marks a connection of an agent or a console.
OWN_CONNECTION = "qmf.management"
#: The connection property with which a broker of this project names the user who has logged in.
USER = "qmf.user"
_RECEIVING, _SENDING = "qmf-in-", "qmf-out-"
#: A regular expression for the names of our links, which are the ends of the names of their queues.
OWN_LINK = rf"(?:{_RECEIVING}|{_SENDING})[0-9a-f-]+"
_OWN_NAME = re.compile(rf"(?:.*_)?{OWN_LINK}", re.DOTALL)


def receiving_link_name(number: int | None = None) -> str:
    """A new name for a link that receives messages; its last part is `number` or unique."""
    return f"{_RECEIVING}{uuid.uuid4() if number is None else number}"


def sending_link_name() -> str:
    """A new name for a link that sends messages."""
    return f"{_SENDING}{uuid.uuid4()}"


def is_own_name(name: str) -> bool:
    """True for the name of a link of an agent or a console, and of a queue that a broker created for one."""
    return _OWN_NAME.fullmatch(name) is not None


def is_own_connection(properties: object) -> bool:
    """True for the properties of a connection of an agent or a console."""
    return isinstance(properties, Mapping) and bool(properties.get(OWN_CONNECTION))
