"""The common base of what the broker refuses to a client."""

from __future__ import annotations


class AmqpRefusal(Exception):
    """Something that a client asked for is refused.

    Attributes:
        condition, description: AMQP error for the client.
    """

    def __init__(self, condition: str, description: str) -> None:
        self.condition = condition
        self.description = description
        super().__init__(condition, description)
