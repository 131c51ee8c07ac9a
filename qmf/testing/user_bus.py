"""A memory bus with a user id, for tests of an agent's access function."""

from __future__ import annotations

import attrs

from qmf.bus import MemoryBus, MemoryExchange
from qmf.bus.base import OutcomeCallback
from qmf.codec import decode_message, encode_message


class UserBus(MemoryBus):
    """A `MemoryBus` that writes a user id on every message, as a broker with authentication does."""

    def __init__(self, exchange: MemoryExchange, user: str) -> None:
        """Make a bus for one user.

        Args:
            exchange: the exchange that connects this bus with others.
            user: the user id.
        """
        super().__init__(exchange)
        self._user = user.encode()

    async def send(self, data: bytes, *, confirm: bool = False) -> None:
        """See `Bus`."""
        await super().send(self._with_user(data), confirm=confirm)

    def try_send(self, data: bytes, on_outcome: OutcomeCallback) -> bool:
        """See `Bus`."""
        return super().try_send(self._with_user(data), on_outcome)

    def _with_user(self, data: bytes) -> bytes:
        return encode_message(attrs.evolve(decode_message(data), user_id=self._user))
