"""What the broker knows of a client, as a value: without the connection, which may be gone."""

from __future__ import annotations

from collections.abc import Mapping

import attrs


@attrs.frozen
class ClientInfo:
    """What is known of a client.

    Attributes:
        address: its address and port.
        container: its container id, or empty.
        user: the user that it has logged in as, or empty.
        mechanism: SASL mechanism that it used, or empty.
        properties: of its connection, such as `product`.
    """

    address: str
    container: str = ""
    user: str = ""
    mechanism: str = ""
    properties: Mapping[str, object] = attrs.field(factory=dict)
