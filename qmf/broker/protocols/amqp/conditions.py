"""AMQP's error conditions for what the broker refuses, and the outcome of a message."""

from __future__ import annotations

from qmf.broker.refusal import Reason, Refusal
from qmf.bus.engine.values import Outcome

CONDITIONS = {
    Reason.MALFORMED: "amqp:decode-error",
    Reason.INVALID: "amqp:invalid-field",
    Reason.NOT_FOUND: "amqp:not-found",
    Reason.UNAUTHORIZED: "amqp:unauthorized-access",
    Reason.FULL: "amqp:resource-limit-exceeded",
    Reason.CIRCULAR: "amqp:not-allowed",
    Reason.UNKNOWN_TRANSACTION: "amqp:transaction:unknown-id",
    Reason.ROLLED_BACK: "amqp:transaction:rollback",
}

UNAUTHORIZED = CONDITIONS[Reason.UNAUTHORIZED]

_ACCEPTED = Outcome.ACCEPTED, "", ""


def outcome_of(refusal: Refusal | None) -> tuple[Outcome, str, str]:
    """Outcome, condition and description for the sender of a message, or of a request to the coordinator."""
    return _ACCEPTED if refusal is None else (Outcome.REJECTED, CONDITIONS[refusal.reason], refusal.description)


class LinkRefused(Exception):
    """A link cannot be granted."""

    def __init__(self, condition: str, description: str) -> None:
        self.condition = condition
        self.description = description
        super().__init__(condition, description)
